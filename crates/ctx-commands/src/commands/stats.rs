//! `ctx stats`.

use std::process::ExitCode;

use ctx_core::{Error, ErrorKind, Timestamp};
use ctx_session::{DiscoveredSession, Home};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, minute, percent, thousands, usd};
use ctx_terminal::out::{BOLD, Cell, DIM, Out, Table};
use ctx_trace::StoredRecords;
use ctx_trace::stats::{Figures, GroupBy, Origin, Stats, StatsReport, StatsRow};

use super::replay::replayed;
use super::sessions::short_project;
use crate::args::{self, Fit, Global, Summaries};
use crate::files::{earlier_page, write_beside};
use crate::session_args::homes;
use crate::setup;

const EMPTY: &str = "no records of `ctx serve` yet, and no sessions to replay; \
                     `ctx run -- CLIENT` sends the requests of a client through ctx";

pub(crate) fn run(global: &Global, args: &args::Stats, out: &Out) -> anyhow::Result<ExitCode> {
    let since = args.since.as_deref().map(parse_since).transpose().map_err(misuse)?;
    let folder = Home::from_env()?.root.join("proxy").join("traces");
    let stored = out.while_waiting("reading records", || StoredRecords::read(&folder))?;
    if stored.damaged > 0 {
        let damaged = counted(usize::try_from(stored.damaged).unwrap_or(usize::MAX), "record");
        out.warn(format!("{damaged} skipped: damaged, or of a later version"));
    }
    let mut stats = Stats::new(args.by, since);
    stored.sessions.iter().for_each(|session| stats.add_trace(session));
    let has_records = stored.sessions.iter().any(|session| !session.requests.is_empty());
    let mut failed = 0;
    if args.sessions || !has_records {
        failed = add_sessions(global, (args.last, since), &mut stats, out)?;
    }
    let report =
        StatsReport { damaged_records: stored.damaged, failed_sessions: failed, ..stats.report() };
    if let Some(page) = &args.page.html {
        let existing = earlier_page(page, args.page.force);
        write_beside(&folder, page, existing, |writer| {
            Ok(ctx_inspector::pages::stats::write(&report, writer)?)
        })?;
        out.note(format!("page written to {}", page.display()));
    }
    if stats.is_empty() {
        out.note(match (since, has_records || args.sessions) {
            (Some(since), true) => format!("no requests since {} UTC", minute(since)),
            _ => EMPTY.to_owned(),
        });
    }
    out.report(args.json, &report, print)
}

/// Replays the newest sessions. Returns how many could not be replayed.
fn add_sessions(
    global: &Global,
    (last, since): (usize, Option<Timestamp>),
    stats: &mut Stats,
    out: &Out,
) -> anyhow::Result<u64> {
    let found = homes()?.sessions();
    found.problems.iter().for_each(|problem| out.warn(problem.to_string()));
    let is_new = |session: &DiscoveredSession| since.is_none_or(|since| session.modified >= since);
    let sessions: Vec<_> = found.sessions.into_iter().filter(is_new).take(last).collect();
    let summaries = Summaries { summary_model: Some("none".to_owned()) };
    // It is `ctx serve` whose savings are simulated.
    let profile = setup::config(global)?.for_proxy().profile();
    let fit = Fit { profile: Some(profile), ..Fit::default() };
    let bar = out.progress("replaying sessions", sessions.len());
    let (mut failed, mut first_error) = (0, None);
    for session in &sessions {
        match replayed(global, (&fit, &summaries), &session.path, false, &Out::silent()) {
            Ok(replay) => stats.add_replay(&replay.report, session),
            Err(error) => {
                failed += 1;
                first_error.get_or_insert_with(|| format!("{}: {error}", session.path.display()));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(error) = first_error {
        let skipped = counted(usize::try_from(failed).unwrap_or(usize::MAX), "session");
        out.warn(format!("{skipped} skipped; {error}"));
    }
    Ok(failed)
}

/// Parses a date, or an age.
fn parse_since(text: &str) -> Result<Timestamp, Error> {
    let utc = jiff::tz::TimeZone::UTC;
    let at = match text.parse::<jiff::civil::Date>() {
        Ok(date) => date.to_zoned(utc),
        Err(_) => text
            .parse::<jiff::Span>()
            .and_then(|age| jiff::Timestamp::now().to_zoned(utc).checked_sub(age.abs())),
    };
    let at = at.map_err(|_| {
        Error::new(ErrorKind::InvalidInput, format!("invalid time '{text}'"))
            .hint("give a date such as 2026-01-31, or an age such as 12h, 7d or 2w")
    })?;
    Ok(Timestamp(at.timestamp().as_millisecond()))
}

fn print(report: &StatsReport, out: &Out) -> anyhow::Result<()> {
    for (nth, total) in report.totals.iter().enumerate() {
        if nth > 0 {
            out.line("")?;
        }
        out.line(headline(total))?;
        out.line(format!("{DIM}{}{DIM:#}", source(report, total)))?;
        out.line("")?;
        out.line(rows(report, total))?;
    }
    Ok(())
}

/// Describes the sums of an origin in a sentence.
fn headline(total: &StatsRow) -> String {
    let figures = &total.figures;
    let share = figures.tokens_saved.unsigned_abs() as f64 / figures.tokens_before.max(1) as f64;
    let tokens =
        format!("{} tokens ({})", thousands(figures.tokens_saved.unsigned_abs()), percent(share));
    let (saved, dollars) = (figures.tokens_saved, figures.saved_usd);
    let dollars = dollars.map(|dollars| (dollars, format!(" and {}", usd(dollars.abs()))));
    let less_or_more = |is_less| if is_less { "less" } else { "more" };
    let changed = match dollars {
        None if saved >= 0 => format!("{tokens} saved"),
        None => format!("{tokens} more"),
        Some((dollars, text)) if saved >= 0 && dollars >= 0.0 => format!("{tokens}{text} saved"),
        Some((dollars, text)) => {
            let [tokens_are, dollars_are] = [saved >= 0, dollars >= 0.0].map(less_or_more);
            format!("{tokens} {tokens_are}{text} {dollars_are}")
        }
    };
    let requests = counted(usize::try_from(figures.requests).unwrap_or(usize::MAX), "request");
    format!("{BOLD}{}: {changed} in {requests}{BOLD:#}", origin(total.origin))
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "measured",
        Origin::Simulated => "simulated",
    }
}

/// Describes where the figures come from.
fn source(report: &StatsReport, total: &StatsRow) -> String {
    let Figures { requests, reported, priced, overflows_avoided, failed, .. } = total.figures;
    let mut text = match total.origin {
        Origin::Measured => format!(
            "records of ctx serve; tokens before: what the client sent; after: what ctx sent; \
             counted by the provider for {} of {} requests, else by ctx",
            thousands(reported),
            thousands(requests),
        ),
        Origin::Simulated => format!(
            "{} replayed; tokens before: what the agent sent, counted by the provider for {} of {} \
             requests, else the full history; after: what ctx would have sent",
            counted(usize::try_from(report.replayed_sessions).unwrap_or(usize::MAX), "session"),
            thousands(reported),
            thousands(requests),
        ),
    };
    if overflows_avoided > 0 {
        let n = thousands(overflows_avoided);
        text.push_str(&format!("; {n} were larger than the window before"));
    }
    if failed > 0 {
        text.push_str(&format!("; {} failed", thousands(failed)));
    }
    if priced < requests - failed {
        text.push_str(&format!("; {} have no known price", thousands(requests - failed - priced)));
    }
    text
}

fn signed(n: i64) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", thousands(n.unsigned_abs()))
}

/// Columns dropped on a narrow terminal, in this order.
const SPARED: [&str; 6] = ["after", "before", "expanded", "recovered", "facts kept", "compactions"];

/// The columns after the first. The last two are only measured.
const COLUMNS: [&str; 10] = [
    "requests",
    "before",
    "after",
    "saved",
    "USD saved",
    "cache hits",
    "compactions",
    "facts kept",
    "recovered",
    "expanded",
];

fn rows(report: &StatsReport, total: &StatsRow) -> String {
    let first = match report.by {
        GroupBy::Day => "day (UTC)",
        GroupBy::Project => "project",
        GroupBy::Client => "client",
        GroupBy::Model => "model",
    };
    let columns = COLUMNS.len() - if total.origin == Origin::Measured { 0 } else { 2 };
    let header: Vec<_> = [first].into_iter().chain(COLUMNS).take(columns + 1).collect();
    let named = |key: &str| match report.by {
        GroupBy::Project => short_project(key),
        GroupBy::Day | GroupBy::Client | GroupBy::Model => key.to_owned(),
    };
    let of_origin = report.rows.iter().filter(|row| row.origin == total.origin);
    let mut rows: Vec<Vec<Cell>> = of_origin
        .map(|row| cells(row.key.as_deref().map_or_else(|| "unknown".to_owned(), named), row))
        .collect();
    if rows.len() > 1 {
        rows.push(cells("total".to_owned(), total));
    }
    rows.iter_mut().for_each(|row| row.truncate(header.len()));
    Table::new(&header, rows, header.len()).without(&SPARED).fitted()
}

fn cells(key: String, row: &StatsRow) -> Vec<Cell> {
    let figures = &row.figures;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        key,
        thousands(figures.requests),
        thousands(figures.tokens_before),
        thousands(figures.tokens_after),
        signed(figures.tokens_saved),
        or_dash(figures.saved_usd.map(usd)),
        or_dash(figures.cache_hit_rate.map(percent)),
        thousands(figures.compactions),
        or_dash(figures.facts_kept.map(percent)),
        or_dash(figures.recoveries.map(thousands)),
        or_dash(figures.expansions.map(thousands)),
    ]
    .map(Cell::from)
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_ages() {
        assert_eq!(parse_since("1970-01-02").unwrap(), Timestamp(86_400_000));
        let [week, days] = ["1w", "7d"].map(|text| parse_since(text).unwrap().0);
        assert!((week..week + 60_000).contains(&days), "{week} {days}");
        assert!(parse_since("12h").unwrap() > parse_since("1d").unwrap());
        for text in ["", "soon", "7", "2026-13-01", "99999999y"] {
            assert_eq!(parse_since(text).unwrap_err().kind(), ErrorKind::InvalidInput, "{text}");
        }
    }
}
