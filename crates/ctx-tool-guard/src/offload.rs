//! Moving older results to files, as CoPaw does.

use std::borrow::Cow;

use ctx_core::{BlobStore, Block, Chars, ContextView, Result, Timestamp, ToolResult, TurnContext};

use crate::Offload;
use crate::cut::{KeptParts, chars_only, cut};
use crate::limits::MIN_CHARS;
use crate::notice::{CONTEXT_LIMIT_TRUNCATION_NOTICE, preserved_at, preserved_line};
use crate::replacement::{Replacement, rewrite};

/// The maximum length of a path. A result that was moved before ends in a path, and may exceed the
/// threshold by its length.
const LONGEST_PATH: u32 = 4_096;

const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

/// Moves results that have left the newest to files.
///
/// Earlier results were moved on earlier turns. The walk from the end therefore visits only the
/// newest ones and as many others as there are new results, so that the cost of a turn depends on
/// its new results.
pub(crate) fn offload(
    view: &mut ContextView,
    settings: &Offload,
    blobs: Option<&dyn BlobStore>,
    turn: &TurnContext,
) -> Result<()> {
    let keep = settings.keep_n as usize;
    let threshold = settings.threshold_chars.max(MIN_CHARS);
    let counter = *view.ledger().counter();
    let fresh = view.nodes()[view.fresh_from()..].iter().filter(|n| n.is_live());
    let reach = keep.saturating_add(fresh.map(|n| n.results().len()).sum());
    let (mut newer, mut written) = (0usize, 0usize);
    for at in (0..view.len()).rev() {
        if newer >= reach {
            break;
        }
        let node = view.node(at);
        let results = node.results().len();
        if results == 0 || !node.is_live() {
            continue;
        }
        // Within one message the last result is the newest.
        let mut age = newer + results;
        newer += results;
        if newer <= keep || counter.most_chars(node.tokens()) <= threshold {
            continue;
        }
        let source = node.entry().message()?;
        rewrite(view, at, |result| {
            age -= 1;
            if age < keep {
                return None;
            }
            let whole = source.tool_results().find(|r| r.call_id == result.call_id);
            let file = FileOf { result: whole.unwrap_or(result), blobs, turn };
            let moved = shorten(result, threshold, &file)?;
            written += usize::from(blobs.is_some());
            Some(moved)
        })?;
    }
    if let Some(blobs) = blobs.filter(|_| written > 0) {
        let age = i64::from(settings.retention_days).saturating_mul(MILLIS_PER_DAY);
        // A failed removal is harmless: it is retried next time.
        let _ = blobs.expire(Timestamp(turn.now.0.saturating_sub(age)));
    }
    Ok(())
}

/// A result in full, and the store for it.
struct FileOf<'a> {
    result: &'a ToolResult,
    blobs: Option<&'a dyn BlobStore>,
    turn: &'a TurnContext,
}

impl FileOf<'_> {
    /// Writes the file. Returns its path, or why there is none.
    fn write(&self) -> Result<String, Cow<'static, str>> {
        let Some(blobs) = self.blobs else {
            return Err(
                "not among the newest results; truncated, and not written: no blob store".into()
            );
        };
        blobs.put(&self.turn.ids.next_id(), &self.result.plain_text()).map_err(|e| {
            format!("not among the newest results; truncated, and not written: {e}").into()
        })
    }
}

/// Returns the truncated content of a result whose text exceeds the threshold. Images stay.
fn shorten(result: &ToolResult, threshold: Chars, file: &FileOf<'_>) -> Option<Replacement> {
    let text = result.plain_text();
    let length = Chars::of(&text);
    let moved_before =
        length.0 <= threshold.0.saturating_add(LONGEST_PATH) && preserved_line(&text).is_some();
    if length <= threshold || moved_before {
        return None;
    }
    let (suffix, reason) = match file.write() {
        Ok(path) => (
            format!("{CONTEXT_LIMIT_TRUNCATION_NOTICE}\n{}", preserved_at(&path)),
            format!("not among the newest results; moved to {path}").into(),
        ),
        Err(why) => (CONTEXT_LIMIT_TRUNCATION_NOTICE.to_owned(), why),
    };
    let counter = ctx_core::Counter::default();
    let shown = cut(&text, chars_only(threshold), KeptParts::Beginning, &suffix, &counter);
    let mut content = vec![Block::text(shown)];
    content.extend(result.content.iter().filter(|b| !matches!(b, Block::Text { .. })).cloned());
    Some(Replacement { content, reason })
}
