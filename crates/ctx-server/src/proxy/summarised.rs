//! How the summary of a compaction was come by, and what a person should be told of it.

use ctx_core::{Compacted, EntryId};
use ctx_layers::compaction::{Details, Receipt, Rung};
use ctx_memory::Redactor;

use super::Proxy;
use super::recorded::recorded;
use crate::trace::{CompactionRecord, Summarised, SummaryOutcome};

/// A compaction as it is recorded. It is counted, and where its summary is not what was asked for, a
/// person is told: once for a conversation and a cause.
pub(super) fn noted(
    proxy: &Proxy,
    conversation: &str,
    entry: Option<EntryId>,
    compacted: &Compacted,
) -> CompactionRecord {
    let summarised = summarised(compacted);
    proxy.metrics.compaction(summarised.as_ref().map(|summarised| summarised.outcome.name()));
    if let Some((cause, text)) = summarised.as_ref().and_then(warning) {
        proxy.warn_of(
            &format!("{conversation} {cause}"),
            &format!("conversation {conversation}: {text}"),
        );
    }
    // The number of the request is filled in with the rest.
    CompactionRecord { summarised, ..recorded(0, entry, compacted) }
}

/// What the receipt of a compaction says of its summary. An engine of others may have none.
fn summarised(compacted: &Compacted) -> Option<Summarised> {
    let Receipt { rung, calls, notes, .. } =
        Details::from_json(compacted.details.as_ref()?)?.receipt;
    let is_written = matches!(rung, Rung::Model | Rung::WithoutOversized);
    let outcome = match calls.last() {
        _ if is_written => SummaryOutcome::Written,
        Some(_) if calls.iter().any(|call| call.answered) => SummaryOutcome::Unusable,
        Some(_) => SummaryOutcome::Failed,
        None if notes.is_empty() => SummaryOutcome::Extracted,
        None => SummaryOutcome::Unasked,
    };
    // The first that failed; those that were asked beside it were given up for it.
    let is_unusable = outcome == SummaryOutcome::Unusable;
    let failed = calls.iter().filter(|call| call.answered == is_unusable);
    let why = failed.filter_map(|call| call.error.as_deref()).next();
    let why = why.or(notes.first().map(String::as_str)).filter(|_| !is_written);
    Some(Summarised {
        outcome,
        rung: match rung {
            Rung::Model => "model",
            Rung::WithoutOversized => "withoutOversized",
            Rung::Extractive => "extractive",
            Rung::HardPrune => "hardPrune",
        }
        .into(),
        calls: u32::try_from(calls.len()).unwrap_or(u32::MAX),
        error: why.map(shown),
    })
}

/// Words of a provider: a key may be among them, and there may be many.
fn shown(text: &str) -> String {
    const MOST: usize = 300;
    Redactor::builtin().redact(text).text.chars().take(MOST).collect()
}

/// What a person is told, and what tells the cause from others: numbers of requests and waits differ
/// each time.
fn warning(summarised: &Summarised) -> Option<(String, String)> {
    let what = match summarised.outcome {
        SummaryOutcome::Written | SummaryOutcome::Extracted => return None,
        SummaryOutcome::Unasked => "no model was asked for its summary",
        SummaryOutcome::Failed => "no model answered when it was asked for its summary",
        SummaryOutcome::Unusable => "no answer could be used as its summary",
    };
    let error = summarised.error.as_deref().unwrap_or("no reason is known");
    let instead = match &*summarised.rung {
        "hardPrune" => "old history is left out without one",
        _ => "what matters is extracted from its history instead",
    };
    let status = error
        .split("status: ")
        .nth(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    let head = error.split(" (").next().unwrap_or(error);
    let cause = format!("{} {head} {}", summarised.outcome.name(), status.unwrap_or_default());
    Some((cause, format!("{what}: {error}; {instead}")))
}
