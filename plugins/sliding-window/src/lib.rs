//! Keeps the newest messages: the smallest useful engine.
//!
//! When a session exceeds the share `above` (default 1.0) of its budget, it is cut to the newest
//! whole groups that fit into `share` (default 0.5) of it. Between two cuts all requests begin with
//! the same messages, so the provider's prompt cache stays valid.

use std::collections::{HashMap, HashSet};

use ctx_engine_sdk::{Assembled, Engine, Error, Hello, Host, Info, Plan, Result, Row, Session};

/// The engine.
#[derive(Debug)]
pub struct SlidingWindow {
    share: f64,
    above: f64,
    /// The first kept row of each session, because a host may send the rows before it again.
    cuts: HashMap<String, String>,
}

impl Engine for SlidingWindow {
    fn hello(hello: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
        let share = number(hello, "share", 0.5)?;
        let above = number(hello, "above", 1.0)?.max(share);
        let info = Info::new("sliding-window", env!("CARGO_PKG_VERSION")).without_contents();
        Ok((Self { share, above, cuts: HashMap::new() }, info))
    }

    fn assemble(&mut self, session: &Session, _: &mut Host<'_>) -> Result<Assembled> {
        let rows = session.rows();
        let room = session.budget().messages as f64;
        let known = self.cuts.get(session.id());
        let mut cut = known.and_then(|id| rows.iter().position(|r| r.id == *id)).unwrap_or(0);
        // The host keeps protected rows even before the cut.
        let pinned: u64 = rows.iter().take(cut).filter(|row| row.keep).map(|row| row.tokens).sum();
        let kept: u64 = rows.iter().skip(cut).map(|row| row.tokens).sum();
        if (pinned + kept) as f64 > room * self.above {
            cut = newest(rows, (room * self.share) as u64);
            if cut == rows.len() {
                // The newest group alone exceeds the share: keep it if it fits the whole budget.
                cut = newest(rows, room as u64);
            }
            if let Some(row) = rows.get(cut) {
                self.cuts.insert(session.id().to_owned(), row.id.clone());
            }
        }
        Ok(Plan::keep_last(rows.len() - cut).because("older than the window").into())
    }
}

/// Returns the first row to keep, so that the kept rows fit into `room` and no group is split.
fn newest(rows: &[Row], room: u64) -> usize {
    let mut firsts = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        firsts.entry(row.group).or_insert(at);
    }
    let mut room = room.saturating_sub(rows.iter().filter(|r| r.keep).map(|r| r.tokens).sum());
    let (mut cut, mut open) = (rows.len(), HashSet::new());
    for (at, row) in rows.iter().enumerate().rev() {
        open.insert(row.group);
        if !row.keep {
            let Some(left) = room.checked_sub(row.tokens) else { break };
            room = left;
        }
        if firsts.get(&row.group) == Some(&at) {
            open.remove(&row.group);
        }
        // A cut is allowed only between groups.
        if open.is_empty() {
            cut = at;
        }
    }
    cut
}

fn number(hello: &Hello, key: &str, default: f64) -> Result<f64> {
    let number = hello.config.get(key).map_or(Some(default), |value| value.as_f64());
    number.filter(|number| *number > 0.0 && *number <= 1.0).ok_or_else(|| {
        Error::failed(format!("'{key}' must be a number above 0 and up to 1"))
            .hint(format!("omit it for the default {default}"))
    })
}

ctx_engine_sdk::export_engine!(SlidingWindow);
