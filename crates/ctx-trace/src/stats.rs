//! What ctx saved, by day, project, client or model.
//!
//! [`Stats`] sums the records of the proxy, which are [measured](Origin::Measured), and replays of
//! sessions, which are [simulated](Origin::Simulated). The two are never added to each other.

mod figures;
mod status;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ctx_core::{Timestamp, Tokens, Usage};
use ctx_eval::ReplayReport;
use ctx_layers::compaction::{Details, Receipt};
use ctx_model::Catalogue;
use ctx_session::DiscoveredSession;
use serde::Serialize;

use crate::{BreakCause, Record, RequestOutcome, SessionTrace, is_plausible};
use figures::{Request, Sums};

pub use figures::Figures;
pub use status::Status;

/// Providers cache no shorter prefixes.
const CACHE_MIN_TOKENS: f64 = 1_024.0;

/// What a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GroupBy {
    /// The day of the request, in UTC.
    #[default]
    Day,
    /// The folder in which the client works.
    Project,
    /// The client or agent.
    Client,
    /// The requested model.
    Model,
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// Requests that the proxy sent.
    Measured,
    /// Requests of recorded sessions, as ctx would have sent them.
    Simulated,
}

/// The figures of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsRow {
    /// Whether the figures are measured or simulated.
    pub origin: Origin,
    /// The day (`2026-01-31`), folder, client or model; null if it is unknown, and in totals.
    pub key: Option<String>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The figures of all groups. The field names are part of the command line's contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsReport {
    /// What a row is about.
    pub by: GroupBy,
    /// The time of the first counted request; null without a limit.
    pub since: Option<Timestamp>,
    /// The groups: days in order, others by saved tokens.
    pub rows: Vec<StatsRow>,
    /// The sums: a row for each origin that has requests.
    pub totals: Vec<StatsRow>,
    /// Records that could not be read and are not counted.
    pub damaged_records: u64,
    /// Sessions that were replayed.
    pub replayed_sessions: u64,
    /// Sessions that could not be replayed.
    pub failed_sessions: u64,
}

/// Sums requests by group.
#[derive(Debug, Default)]
pub struct Stats {
    by: GroupBy,
    since: Option<Timestamp>,
    groups: BTreeMap<(Origin, Option<String>), Sums>,
    totals: BTreeMap<Origin, Sums>,
    replayed: u64,
}

/// The possible keys of a request.
#[derive(Clone, Copy)]
struct Keys<'a> {
    at: Timestamp,
    project: Option<&'a str>,
    client: Option<&'a str>,
    model: Option<&'a str>,
}

impl Stats {
    /// Creates empty sums of the requests at or after `since`.
    #[must_use]
    pub fn new(by: GroupBy, since: Option<Timestamp>) -> Self {
        Self { by, since, ..Self::default() }
    }

    /// Adds the requests of a conversation of the proxy.
    pub fn add_trace(&mut self, session: &SessionTrace) {
        let (info, mut previous) = (&session.info, None);
        for record in &session.requests {
            let keys = Keys {
                at: record.at,
                project: info.project.as_deref(),
                client: info.client.as_deref().map(client_name),
                model: record.model.as_deref().or(info.model.as_deref()),
            };
            let compaction = record.compaction.as_ref().filter(|made| !made.undone);
            let receipt = compaction.and_then(|made| receipt(made.details.as_ref()));
            self.each(Origin::Measured, keys, |sums| {
                sums.add(&measured(record, previous));
                sums.recovered(record.outcome == RequestOutcome::Ok && record.attempts > 1);
                sums.expanded(record.actions.get("retrieval").copied().unwrap_or_default());
                if compaction.is_some() {
                    sums.compacted(receipt.as_ref());
                }
            });
            previous = Some(record.raw_tokens);
        }
    }

    /// Adds the requests of a replayed session. They are compared with the recorded requests, or with
    /// the full history where the provider's report is missing or does not match the messages. A
    /// request without a time has that of the file.
    pub fn add_replay(&mut self, report: &ReplayReport, session: &DiscoveredSession) {
        let project = session.project.as_ref().map(|project| project.display().to_string());
        let keys = |at: usize| Keys {
            at: report.requests.get(at).and_then(|one| one.timestamp).unwrap_or(session.modified),
            project: project.as_deref(),
            client: Some(session.agent.name()),
            model: report.model.as_deref(),
        };
        let is_comparable = report.calibration.is_some_and(|found| found.constant_applied);
        let compacted = report.recorded_compactions.iter().filter_map(|made| made.request).min();
        for (nth, request) in report.requests.iter().enumerate() {
            // Up to here neither the agent nor ctx has removed anything: a difference would be the
            // error of the estimate.
            let is_untouched = request.raw_tokens == request.sent_tokens
                && compacted.is_none_or(|first| nth < first);
            let recorded = request.recorded_tokens.filter(|_| is_comparable && !is_untouched);
            let before = recorded.unwrap_or(request.raw_tokens.get());
            let cost_before = match recorded {
                Some(_) => request.cost_recorded_usd,
                None => request.cost_without_usd,
            };
            let sums = Request {
                before,
                after: request.sent_tokens.get(),
                cached: Some((request.cached_tokens.get(), request.sent_tokens.get())),
                is_reported: recorded.is_some(),
                saved_usd: cost_before.zip(request.cost_usd).map(|(before, after)| before - after),
                overflow_avoided: request.fits && before > report.window.get(),
                is_answered: true,
            };
            self.each(Origin::Simulated, keys(nth), |all| all.add(&sums));
        }
        for made in &report.compactions {
            let receipt = made.receipt();
            self.each(Origin::Simulated, keys(made.request), |all| all.compacted(receipt.as_ref()));
        }
        self.replayed += 1;
    }

    /// Whether no request was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    /// Returns the report.
    #[must_use]
    pub fn report(&self) -> StatsReport {
        let row = |origin: Origin, key: Option<String>, sums: &Sums| StatsRow {
            origin,
            key,
            figures: sums.figures(origin),
        };
        let mut rows: Vec<StatsRow> = self
            .groups
            .iter()
            .map(|((origin, key), sums)| row(*origin, key.clone(), sums))
            .collect();
        if self.by != GroupBy::Day {
            rows.sort_by_key(|row| (row.origin, Reverse(row.figures.tokens_saved)));
        }
        StatsReport {
            by: self.by,
            since: self.since,
            rows,
            totals: self.totals.iter().map(|(origin, sums)| row(*origin, None, sums)).collect(),
            replayed_sessions: self.replayed,
            ..StatsReport::default()
        }
    }

    /// Applies `add` to the sums that contain a request, unless it is too old.
    fn each(&mut self, origin: Origin, keys: Keys<'_>, add: impl Fn(&mut Sums)) {
        if self.since.is_some_and(|since| keys.at < since) {
            return;
        }
        let key = match self.by {
            GroupBy::Day => day(keys.at),
            GroupBy::Project => keys.project.map(str::to_owned),
            GroupBy::Client => keys.client.map(str::to_owned),
            GroupBy::Model => keys.model.map(str::to_owned),
        };
        add(self.groups.entry((origin, key)).or_default());
        add(self.totals.entry(origin).or_default());
    }
}

/// The beginnings of the names that clients have in their `user-agent`, and their names elsewhere.
const USER_AGENTS: [(&str, &str); 5] = [
    ("claude-cli", "claude-code"),
    ("codex", "codex"),
    ("GeminiCLI", "gemini-cli"),
    ("opencode", "opencode"),
    ("QwenCode", "qwen-code"),
];

/// Returns the name that sessions of the same client have.
fn client_name(user_agent: &str) -> &str {
    let known = USER_AGENTS.iter().find(|(begin, _)| user_agent.starts_with(begin));
    known.map_or(user_agent, |(_, name)| name)
}

fn day(at: Timestamp) -> Option<String> {
    let at = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(at.strftime("%Y-%m-%d").to_string())
}

/// Returns the receipt in a compaction's details, if ctx wrote them.
fn receipt(details: Option<&serde_json::Value>) -> Option<Receipt> {
    Some(Details::from_json(details?)?.receipt)
}

/// Returns the figures of a record. `previous` is the size of the conversation's last request.
fn measured(record: &Record, previous: Option<Tokens>) -> Request {
    let (raw, sent) = (record.raw_tokens.get(), record.sent_tokens.get());
    let reported = record.prompt_tokens.filter(|n| sent > 0 && is_plausible(*n, sent));
    let after = reported.unwrap_or(sent);
    // ctx counts both sizes, the provider only the second.
    let scale = if sent == 0 { 1.0 } else { after as f64 / sent as f64 };
    let before = (raw as f64 * scale).round() as u64;
    Request {
        before,
        after,
        cached: reported.zip(record.cached_tokens).map(|(prompt, n)| (n.min(prompt), prompt)),
        is_reported: reported.is_some(),
        saved_usd: saved_usd(record, previous, scale, (before, after)),
        overflow_avoided: record.fits && record.raw_tokens > record.window,
        is_answered: !matches!(record.outcome, RequestOutcome::Refused | RequestOutcome::Failed),
    }
}

/// Returns the price of what the client sent minus that of what ctx sent, without the answer.
///
/// Without ctx the request would begin with the whole previous one, unless the client changed that.
/// Of such a beginning the provider's cache is assumed to have as large a share as it had of the one
/// that ctx sent. Uncached tokens have the input price.
fn saved_usd(
    record: &Record,
    previous: Option<Tokens>,
    scale: f64,
    (before, after): (u64, u64),
) -> Option<f64> {
    let prices = Catalogue::embedded().find(record.model.as_deref()?)?.prices;
    if record.raw_tokens == record.sent_tokens {
        return Some(0.0);
    }
    let reusable = record.unchanged_prefix.get() as f64 * scale;
    let share = match record.cached_tokens {
        None => 0.0,
        Some(_) if reusable < CACHE_MIN_TOKENS => 1.0,
        Some(cached) => (cached as f64 / reusable).min(1.0),
    };
    let by_client = record.prefix_break.filter(|found| found.cause == BreakCause::Client);
    let changed = by_client.map_or(Tokens::ZERO, |found| found.tokens);
    let begins = previous.unwrap_or(record.unchanged_prefix) - changed;
    let full_cached = (begins.min(record.raw_tokens).get() as f64 * scale * share).round() as u64;
    let cost = |prompt: u64, cached: u64| {
        let cache_read = cached.min(prompt);
        prices.cost(&Usage { input: prompt - cache_read, cache_read, ..Usage::default() }).0
    };
    let cached = record.cached_tokens.unwrap_or_default();
    Some(cost(before, full_cached) - cost(after, cached))
}
