//! How the summary of a compaction was created, and the warning about it.

use ctx_core::{Compacted, EntryId};
use ctx_layers::compaction::{Details, Receipt, Rung};
use ctx_redact::Redactor;
use ctx_trace::{CompactionRecord, SummaryOutcome, SummaryRecord};

use super::Proxy;

/// Returns the record of a compaction, and counts it. If the summary is not as configured, warns
/// once per conversation and cause.
pub(super) fn record_compaction(
    proxy: &Proxy,
    conversation: &str,
    entry: Option<EntryId>,
    compacted: &Compacted,
) -> CompactionRecord {
    // Other engines may write none.
    let receipt = compacted.details.as_ref().and_then(Details::from_json).map(|it| it.receipt);
    (proxy.settings.note)(&note(conversation, compacted, receipt.as_ref()));
    let summarised = receipt.map(summarised);
    proxy.metrics.compaction(summarised.as_ref().map(|summarised| summarised.outcome.name()));
    if let Some((cause, text)) = summarised.as_ref().and_then(warning) {
        proxy.warn_of(
            &format!("{conversation} {cause}"),
            &format!("conversation {conversation}: {text}"),
        );
    }
    // A summary may contain secrets.
    let redacted = |text: &str| Redactor::builtin().redact(text).text.into_owned();
    let details = compacted.details.as_ref().map(|details| redacted(&details.to_string()));
    CompactionRecord {
        // Filled in later.
        request: 0,
        entry_id: entry,
        first_kept_entry_id: compacted.first_kept_entry_id.clone(),
        tokens_before: compacted.tokens_before,
        tokens_after: compacted.tokens_after,
        summary: redacted(&compacted.summary),
        details: details.and_then(|text| serde_json::from_str(&text).ok()),
        summarised,
        undone: false,
    }
}

/// Describes a compaction in a line.
fn note(conversation: &str, compacted: &Compacted, receipt: Option<&Receipt>) -> String {
    let after = compacted.tokens_after.map(|tokens| format!(" to {tokens}")).unwrap_or_default();
    let coverage = receipt.map(|receipt| receipt.audit.coverage * 100.0);
    let kept = coverage.map(|share| format!(", {share:.1} % of the facts kept"));
    let before = compacted.tokens_before;
    format!(
        "conversation {conversation}: compacted from {before}{after} tokens{}",
        kept.unwrap_or_default()
    )
}

/// Returns the summary facts in a compaction's receipt.
fn summarised(receipt: Receipt) -> SummaryRecord {
    let Receipt { rung, calls, notes, .. } = receipt;
    let is_written = matches!(rung, Rung::Model | Rung::WithoutOversized);
    let outcome = match calls.last() {
        _ if is_written => SummaryOutcome::Written,
        Some(_) if calls.iter().any(|call| call.answered) => SummaryOutcome::Unusable,
        Some(_) => SummaryOutcome::Failed,
        None if notes.is_empty() => SummaryOutcome::Extracted,
        None => SummaryOutcome::Unasked,
    };
    // The first failure; concurrent calls were cancelled because of it.
    let is_unusable = outcome == SummaryOutcome::Unusable;
    let failed = calls.iter().filter(|call| call.answered == is_unusable);
    let why = failed.filter_map(|call| call.error.as_deref()).next();
    let why = why.or(notes.first().map(String::as_str)).filter(|_| !is_written);
    SummaryRecord {
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
    }
}

/// Redacts and shortens a provider's message.
fn shown(text: &str) -> String {
    const MOST: usize = 300;
    Redactor::builtin().redact(text).text.chars().take(MOST).collect()
}

/// Returns the cause and the warning. The cause omits request numbers and delays, which differ each
/// time.
fn warning(summarised: &SummaryRecord) -> Option<(String, String)> {
    let what = match summarised.outcome {
        SummaryOutcome::Written | SummaryOutcome::Extracted => return None,
        SummaryOutcome::Unasked => "no model was called for its summary",
        SummaryOutcome::Failed => "no model answered the request for its summary",
        SummaryOutcome::Unusable => "no answer was usable as its summary",
    };
    let error = summarised.error.as_deref().unwrap_or("unknown reason");
    let instead = match &*summarised.rung {
        "hardPrune" => "old history is dropped without a summary",
        _ => "an extractive summary is used instead",
    };
    let status = error
        .split("status: ")
        .nth(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    let head = error.split(" (").next().unwrap_or(error);
    let cause = format!("{} {head} {}", summarised.outcome.name(), status.unwrap_or_default());
    Some((cause, format!("{what}: {error}; {instead}")))
}
