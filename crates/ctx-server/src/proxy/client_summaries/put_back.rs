//! Puts back what the summaries in a request lost.

use bytes::Bytes;
use ctx_core::Block;
use ctx_dialect::wire::{OutgoingUnit, Request, SummaryRequest};
use ctx_layers::compaction::ClientSummary;
use ctx_trace::CompactionRecord;

use super::super::Proxy;
use super::super::client_request::ClientRequest;
use super::super::config::ClientCompaction;
use super::super::objects::{MOST_OBJECTS, has_more_objects};
use super::{may_have_summary, owner, summaries_in};

/// Puts back what a summary in the request lost. Returns the body, and the record of the audit if it
/// is new.
pub(in crate::proxy) async fn put_back(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: &Bytes,
) -> Option<(Bytes, Option<CompactionRecord>)> {
    let owner = owner(proxy, client_request);
    if proxy.settings.config.client_compaction != ClientCompaction::Off
        && let Err(error) = proxy.client_summaries.fetch(&owner).await
    {
        proxy.warn_of("store", &format!("summaries of other replicas are not known: {error}"));
    }
    let mut known = proxy.client_summaries.of(&owner);
    if known.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    if has_more_objects(text, MOST_OBJECTS) {
        return None;
    }
    let request = Request::parse(&client_request.route, text).ok()?;
    if request.is_continued {
        return None;
    }
    let mut record = None;
    let mut changed = Vec::new();
    for (at, unit) in request.units.iter().enumerate() {
        if !may_have_summary(at, unit.raw) {
            continue;
        }
        let mut message = (*unit.read()).clone();
        let found = summaries_in(&message, &known);
        // In a request for a summary, the answer before may only be repeated.
        if found.is_empty()
            || at + 2 == request.units.len() && SummaryRequest::of(&request).is_some()
        {
            continue;
        }
        known.retain(|one| found.iter().all(|found| found.normalised != one.normalised));
        let near: String = request.units.iter().skip(at).take(3).map(|unit| unit.raw).collect();
        let mut lost = String::new();
        for (nth, newest) in found.iter().enumerate().rev() {
            // Several may have the same text.
            let summary = proxy.client_summaries.bound(&owner, &format!("{near}{nth}"), newest);
            add_lines(&mut lost, summary.lost(proxy, &request).await.unwrap_or_default());
            record = record.or_else(|| summary.set_record(None));
        }
        if !lost.is_empty() {
            message.blocks.push(Block::text(format!("\n\n{}{lost}", ClientSummary::NOTE)));
            changed.push((at, message));
        }
    }
    if changed.is_empty() {
        return record.map(|record| (body.clone(), Some(record)));
    }
    let mut out: Vec<_> = (0..request.units.len()).map(OutgoingUnit::Unchanged).collect();
    for (at, message) in &changed {
        *out.get_mut(*at)? = OutgoingUnit::Message { message, of: Some(*at) };
    }
    Some((Bytes::from(request.with_history(&out, None).ok()?.into_owned()), record))
}

/// Adds the lines of a text that are not there yet.
fn add_lines(text: &mut String, more: &str) {
    for line in more.lines().filter(|line| !line.is_empty()) {
        if !text.lines().any(|known| known == line) {
            text.push('\n');
            text.push_str(line);
        }
    }
}
