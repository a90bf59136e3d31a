//! A bar that shows how full the window is, without the reserve for the answer.

use ctx_runtime::WindowFill;
use ctx_terminal::format::thousands;

/// The width of the bar, in characters.
const CELLS: u64 = 20;

/// Formats a fill, such as `▕███░░░▏ 34 % of 16,000`.
pub(super) fn bar(fill: &WindowFill) -> String {
    let (used, limit) = (fill.used.get(), fill.limit.get().max(1));
    // Any use is visible, and only a full window looks full.
    let full = match (used * CELLS / limit).min(CELLS) {
        0 if used > 0 => 1,
        cells => cells,
    };
    let cells: String = (0..CELLS).map(|at| if at < full { '█' } else { '░' }).collect();
    format!("▕{cells}▏ {} % of {}", used * 100 / limit, thousands(limit))
}

#[cfg(test)]
mod tests {
    use ctx_core::Tokens;

    use super::*;

    #[test]
    fn the_bar_fills_with_the_window() {
        let shown = |used, window| {
            bar(&WindowFill { used: Tokens(used), limit: Tokens(window), window: Tokens(window) })
        };
        assert_eq!(shown(0, 16_000), "▕░░░░░░░░░░░░░░░░░░░░▏ 0 % of 16,000");
        assert_eq!(shown(10, 16_000), "▕█░░░░░░░░░░░░░░░░░░░▏ 0 % of 16,000");
        assert_eq!(shown(5_440, 16_000), "▕██████░░░░░░░░░░░░░░▏ 34 % of 16,000");
        assert_eq!(shown(15_999, 16_000), "▕███████████████████░▏ 99 % of 16,000");
        assert_eq!(shown(u32::MAX, 1), format!("▕{}▏ 429496729500 % of 1", "█".repeat(20)));
        assert_eq!(shown(0, 0), "▕░░░░░░░░░░░░░░░░░░░░▏ 0 % of 1");
    }
}
