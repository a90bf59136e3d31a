//! The state of a conversation in one line.

use std::fmt;

use ctx_core::Tokens;
use serde::{Deserialize, Serialize};

use super::{GroupBy, Stats};
use crate::{RequestOutcome, SessionTrace};

/// What a conversation fills, saved and read from the cache. The field names are part of the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Tokens of the newest answered request: as the provider reported, else as ctx counted.
    pub tokens: u64,
    /// The context window in tokens.
    pub window: Tokens,
    /// See [`Figures::saved_usd`](super::Figures::saved_usd).
    pub saved_usd: Option<f64>,
    /// See [`Figures::cache_hit_rate`](super::Figures::cache_hit_rate).
    pub cache_hit_rate: Option<f64>,
}

impl Status {
    /// Returns the status of a conversation; `None` if no request was answered.
    #[must_use]
    pub fn of(session: &SessionTrace) -> Option<Self> {
        let is_answered = |outcome| outcome == RequestOutcome::Ok;
        let last = session.requests.iter().rev().find(|record| is_answered(record.outcome))?;
        let mut stats = Stats::new(GroupBy::Model, None);
        stats.add_trace(session);
        let figures = stats.report().totals.pop()?.figures;
        Some(Self {
            tokens: last.prompt_tokens.unwrap_or_else(|| last.sent_tokens.get()),
            window: last.window,
            saved_usd: figures.saved_usd,
            cache_hit_rate: figures.cache_hit_rate,
        })
    }
}

/// `41k of 200k · saved $1.92 · cache 93 %`, without what is unknown or 0.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", short(self.tokens), short(self.window.get()))?;
        if let Some(saved) = self.saved_usd.filter(|saved| *saved >= 0.005) {
            write!(f, " · saved ${saved:.2}")?;
        }
        if let Some(rate) = self.cache_hit_rate {
            write!(f, " · cache {:.0} %", rate * 100.0)?;
        }
        Ok(())
    }
}

/// Returns a number of tokens in thousands or millions.
fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..999_500 => format!("{}k", (n + 500) / 1_000),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_figures_are_left_out() {
        let mut status = Status { tokens: 41_200, window: Tokens(200_000), ..Status::default() };
        assert_eq!(status.to_string(), "41k of 200k");
        status.cache_hit_rate = Some(0.934);
        status.saved_usd = Some(-0.02);
        assert_eq!(status.to_string(), "41k of 200k · cache 93 %");
        status.saved_usd = Some(1.918);
        assert_eq!(status.to_string(), "41k of 200k · saved $1.92 · cache 93 %");
        (status.tokens, status.window) = (999, Tokens(1_000_000));
        assert_eq!(status.to_string(), "999 of 1.0M · saved $1.92 · cache 93 %");
    }
}
