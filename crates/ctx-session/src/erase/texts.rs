//! Removing content derived from erased messages from texts and values, and from the summaries,
//! details and projections of compactions.

use ctx_core::{EntryId, Projection, RawJson};
use ctx_dialect::json::{Object, quote};
use serde_json::Value;

use super::{CitedEntries, EraseCriteria};
use crate::schema::{CompactionExtra, Edits, json};

/// How many levels of JSON inside JSON strings are searched. Tool arguments are one level.
const NESTED: usize = 4;

impl EraseCriteria<'_> {
    pub(super) fn covers(&self, id: &EntryId) -> bool {
        self.all || self.entries.contains(id)
    }

    /// Returns a text without the lines derived from erased messages, and the number of removed
    /// lines. Indented continuation lines belong to the line before them. A heading is removed only
    /// if it contains erased content verbatim.
    pub(super) fn lines(&self, cited: &CitedEntries<'_>, text: &str) -> (String, usize) {
        let (mut kept, mut gone) = (String::with_capacity(text.len()), 0);
        for item in items(text) {
            let is_heading = item.trim_start().starts_with('#');
            let is_erased = match is_heading {
                true => (self.holds)(item),
                false => self.mentions_erased(cited, item),
            };
            if is_erased {
                gone += item.lines().count();
            } else {
                kept.push_str(item);
            }
        }
        if gone > 0 {
            kept.truncate(kept.trim_end().len());
        }
        (kept, gone)
    }

    /// Removes content derived from erased messages from a value: elements of lists, and lines of
    /// multi-line texts. A single-line text is removed only if it contains erased content verbatim.
    /// Returns the number of removed parts.
    pub(super) fn scrub(&self, cited: &CitedEntries<'_>, value: &mut Value) -> usize {
        match value {
            Value::Array(items) => {
                let before = items.len();
                items.retain(|item| match item {
                    Value::String(text) => !self.mentions_erased(cited, text),
                    _ => true,
                });
                let gone = before - items.len();
                gone + items.iter_mut().map(|item| self.scrub(cited, item)).sum::<usize>()
            }
            Value::Object(fields) => {
                fields.iter_mut().map(|(_, field)| self.scrub(cited, field)).sum()
            }
            Value::String(text) if text.contains('\n') || (self.holds)(text) => {
                let (kept, gone) = self.lines(cited, text);
                *text = kept;
                gone
            }
            _ => 0,
        }
    }

    fn mentions_erased(&self, cited: &CitedEntries<'_>, text: &str) -> bool {
        cited.in_text(text) || (self.derived)(text) || (self.holds)(text)
    }

    /// Returns the projections of an entry that stay, as JSON, and the number of removed ones. An
    /// unreadable projection stays unless it contains erased content.
    pub(super) fn forms(&self, entry: &Object<'_>) -> (Vec<RawJson>, usize) {
        let data = entry.get("data").map_or("[]", |data| data.get());
        let forms: Vec<RawJson> = serde_json::from_str(data).unwrap_or_default();
        let stays = |form: &&RawJson| {
            let covers = |form: Projection| form.entries().any(|id| self.covers(id));
            let of_erased = serde_json::from_str(form.as_str()).is_ok_and(covers);
            !of_erased && !holds(form.as_str(), self.holds)
        };
        let kept: Vec<RawJson> = forms.iter().filter(stays).cloned().collect();
        let gone = forms.len() - kept.len();
        (kept, gone)
    }
}

/// Removes the lines derived from erased messages from a summary and its details. Returns their
/// number.
pub(super) fn summary(
    criteria: &EraseCriteria<'_>,
    cited: &CitedEntries<'_>,
    object: &Object<'_>,
    edits: &mut Edits<'_>,
) -> usize {
    let mut gone = 0;
    if let Some(text) = object.text("summary") {
        let (kept, lines) = criteria.lines(cited, &text);
        if lines > 0 {
            edits.set("summary", quote(&kept));
            gone += lines;
        }
    }
    let details = object.get("details").and_then(|raw| serde_json::from_str(raw.get()).ok());
    if let Some(mut details) = details {
        let notes = criteria.scrub(cited, &mut details);
        if notes > 0 {
            edits.set("details", details.to_string());
            gone += notes;
        }
    }
    gone
}

/// Removes erased messages and their projections from the field `ctx` of a compaction. Returns the
/// number of removed projections.
pub(super) fn erase_from_extra(criteria: &EraseCriteria<'_>, extra: &mut CompactionExtra) -> usize {
    extra.staying.retain(|id| !criteria.covers(id));
    let before = extra.projections.len();
    extra.projections.retain(|form| {
        let stays = || json(form).is_ok_and(|form| !holds(&form, criteria.holds));
        !form.entries().any(|id| criteria.covers(id)) && stays()
    });
    before - extra.projections.len()
}

/// Fields that describe the structure of a transcript, not its content.
const STRUCTURE: &str = "type role id parentId timestamp uuid parentUuid sessionId version api \
    provider model modelId stopReason stop_reason toolCallId tool_use_id call_id customType \
    targetId fromId firstKeptEntryId thinkingLevel hash";

/// Whether any text or number in JSON matches. Fields that describe the structure are not searched.
/// Invalid JSON is searched as plain text.
pub(super) fn holds(json: &str, test: &dyn Fn(&str) -> bool) -> bool {
    match serde_json::from_str::<Value>(json) {
        Ok(value) => any(&value, test, NESTED),
        Err(_) => test(json),
    }
}

fn any(value: &Value, test: &dyn Fn(&str) -> bool, levels: usize) -> bool {
    match value {
        Value::String(text) => {
            test(text)
                || levels > 0
                    && text.trim_start().starts_with(['{', '['])
                    && serde_json::from_str(text).is_ok_and(|inner| any(&inner, test, levels - 1))
        }
        Value::Array(items) => items.iter().any(|item| any(item, test, levels)),
        Value::Object(fields) => {
            let is_content = |key: &str| STRUCTURE.split(' ').all(|known| known != key);
            fields.iter().any(|(key, field)| is_content(key) && any(field, test, levels))
        }
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => test(&number.to_string()),
    }
}

/// Splits a text into items: lines, each with the indented lines below it that do not begin with a
/// list marker. No character is lost.
fn items(text: &str) -> Vec<&str> {
    let mut items: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let trimmed = line.trim();
        let is_bullet = trimmed.starts_with(['-', '*', '•']);
        let is_more = line.starts_with([' ', '\t']) && !trimmed.is_empty() && !is_bullet;
        match items.last_mut().filter(|(from, to)| is_more && !text[*from..*to].trim().is_empty()) {
            Some((_, to)) => *to = end,
            None => items.push((at, end)),
        }
        at = end;
    }
    items.into_iter().filter_map(|(from, to)| text.get(from..to)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn check(summary: &str, expected: &str) {
        let entries: HashSet<EntryId> = ["b".into()].into();
        let (says, holds) = (|t: &str| t.contains("4711"), |t: &str| t.contains("heron"));
        let criteria =
            EraseCriteria { entries: &entries, all: false, derived: &says, holds: &holds };
        let (kept, gone) = criteria.lines(&CitedEntries::of(&entries), summary);
        assert_eq!(kept, expected, "{summary}");
        assert_eq!(gone, summary.lines().count() - kept.lines().count());
    }

    #[test]
    fn only_lines_that_cite_or_repeat_erased_content_are_removed() {
        check("## Ports\n- web is 80 [e:a]\n- db is 99 [e:b]\n", "## Ports\n- web is 80 [e:a]");
        check("- port\n  4711,\n  it is said\n- more", "- more");
        check("- a\n  - 4711\n  - b", "- a\n  - b");
        check("## The heron\n- a", "- a");
        check("## 4711\n- a", "## 4711\n- a");
        check("\n\n  a\r\n", "\n\n  a\r\n");
        check("", "");
    }

    #[test]
    fn texts_are_found_at_any_depth_and_behind_escapes() {
        let test = |text: &str| text.contains("red \"heron\"");
        let plain = serde_json::json!({"a": [{"b": "the red \"heron\""}]}).to_string();
        let nested = serde_json::json!({ "arguments": plain }).to_string();
        assert!(holds(&plain, &test) && holds(&nested, &test));
        assert!(holds("torn: red \"heron\"", &test) && !holds("[1, null, true]", &test));
        let deep = "[".repeat(100_000);
        assert!(!holds(&deep, &test));
        assert!(!holds(r#"{"role":"user","content":"a"}"#, &|text| text == "user"));
    }

    #[test]
    fn notes_lose_erased_content_and_keep_their_structure() {
        let entries = HashSet::new();
        let (says, holds) = (|t: &str| t.contains("4711"), |_: &str| false);
        let criteria =
            EraseCriteria { entries: &entries, all: false, derived: &says, holds: &holds };
        let mut value = serde_json::json!({
            "readFiles": ["src/4711.rs", "a.rs"], "trigger": "4711", "text": "- 4711\n- b"
        });
        assert_eq!(criteria.scrub(&CitedEntries::of(&entries), &mut value), 2);
        let kept = serde_json::json!({"readFiles": ["a.rs"], "trigger": "4711", "text": "- b"});
        assert_eq!(value, kept);
    }
}
