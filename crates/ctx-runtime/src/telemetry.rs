//! Events for collectors of traces.

use ctx_core::Tokens;
use serde_json::Value;

/// Adds a compaction to the current span: the size of the request before and after it, and the figures of
/// the audit in its details. Texts are not part of it.
pub fn trace_compaction(before: Tokens, after: Option<Tokens>, details: Option<&Value>) {
    let audit = |name: &str| details?.pointer("/receipt/audit")?.get(name);
    // Collectors get unsigned numbers as text.
    let signed = |tokens: Tokens| tokens.get().cast_signed();
    tracing::info!(
        ctx.compaction.tokens_before = signed(before),
        ctx.compaction.tokens_after = after.map(signed),
        ctx.audit.facts = audit("facts").and_then(|figure| figure.as_i64()),
        ctx.audit.kept = audit("kept").and_then(|figure| figure.as_i64()),
        ctx.audit.coverage = audit("coverage").and_then(|figure| figure.as_f64()),
        "ctx.compaction"
    );
}
