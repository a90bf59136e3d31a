//! Whether the sizes reported by an engine are true.

use ctx_core::Tokens;

use super::compaction::{Tried, try_compact};
use super::{WINDOW, script};
use crate::conformance::bench::Bench;
use crate::conformance::stop::{Stop, Verdict, ensure};

/// A reported size is wrong if it is off by this factor and by this number of tokens.
const FACTOR: u64 = 2;
const TOKENS: u64 = 2_000;

pub(super) fn honesty(bench: &Bench) -> Verdict {
    let running = bench.engine(&bench.host(WINDOW))?;
    let mut session = running.session("s");
    // Everything fits: the engine only has to report the size.
    for n in 0..6 {
        session.say_turn(n, 8_000)?;
        session.request()?;
        session.end_turn()?;
    }
    // The supervising host warns about wrong estimates.
    let warnings = running.engine.take_warnings();
    let remark = warnings.iter().find(|warning| warning.contains("estimate"));
    ensure(
        remark.is_none(),
        || remark.cloned().unwrap_or_default(),
        "sum up the rows' `tokens`, or omit `estimatedTokens`",
    )?;
    let entries = script::session(200, 60_000);
    let mut session = running.session("t");
    // Whether it compacts, and how well, is checked by another case.
    let Ok(Tried::Compacted(done)) = try_compact(&mut session, &entries, 1) else {
        return Ok(None);
    };
    let tokens_after = done.said.tokens_after.unwrap_or(done.after);
    near("tokensBefore", done.said.tokens_before, done.before)?;
    near("tokensAfter", tokens_after, done.after)?;
    Ok(None)
}

fn near(what: &str, said: Tokens, counted: Tokens) -> Result<(), Stop> {
    let (low, high) = (said.get().min(counted.get()), said.get().max(counted.get()));
    ensure(
        high - low <= TOKENS || high <= low.saturating_mul(FACTOR),
        || format!("it reports {what} {said}, but the count is {counted}"),
        "use the host's counts, or omit the figure",
    )
}
