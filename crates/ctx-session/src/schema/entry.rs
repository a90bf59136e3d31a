//! The entries of a session file, in the form in which they are written.

use ctx_core::{EntryId, Error, ErrorKind, RawJson, Result, Timestamp};
use serde::Serialize;

use super::custom::UNDO_TYPE;

/// An entry to append. Field names in the file are the camelCase of these, as in pi.
///
/// JSON passed in as [`RawJson`] is written unchanged, except for line breaks between tokens: an
/// entry is one line.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
#[must_use]
pub enum NewEntry {
    /// A message of the conversation.
    Message {
        /// The message as pi's JSON.
        message: RawJson,
    },
    /// A summary that replaces the entries before `first_kept_entry_id`.
    Compaction {
        /// The summary.
        summary: String,
        /// The first entry that is kept as recorded.
        first_kept_entry_id: EntryId,
        /// The tokens of the context before the compaction.
        tokens_before: u64,
        /// The tokens of the context after the compaction, if known.
        tokens_after: Option<u64>,
        /// Details of the compaction method.
        details: Option<RawJson>,
        /// Whether the summary was not written by the agent itself.
        from_hook: Option<bool>,
        /// The data that ctx stores with its own compactions.
        ctx: Option<RawJson>,
    },
    /// A summary of an abandoned branch.
    BranchSummary {
        /// The last entry of the other branch, or `root`.
        from_id: EntryId,
        /// The summary.
        summary: String,
        /// Details of the method.
        details: Option<RawJson>,
        /// Whether the summary was not written by the agent itself.
        from_hook: Option<bool>,
    },
    /// State of an extension; the model never sees it.
    Custom {
        /// The owner. Names that begin with `ctx.` are reserved for ctx: see [`NewEntry::undo`].
        custom_type: String,
        /// The state.
        data: Option<RawJson>,
    },
    /// A message of an extension; the model sees it as user text.
    CustomMessage {
        /// The owner.
        custom_type: String,
        /// A string, or an array of text and image blocks.
        content: RawJson,
        /// Whether it is displayed to the user.
        display: bool,
        /// Additional data of the extension.
        details: Option<RawJson>,
    },
    /// A label of another entry.
    Label {
        /// The entry.
        target_id: EntryId,
        /// The label; absent to remove it.
        label: Option<String>,
    },
    /// The name of the session.
    SessionInfo {
        /// The name; absent to remove it.
        name: Option<String>,
    },
    /// An edit of an earlier message, for the rest of this branch.
    ContextEdit {
        /// The entry of the message.
        target_id: EntryId,
        /// `{"content": ...}`; absent to drop the message.
        #[serialize_always]
        replacement: Option<RawJson>,
    },
    /// Moves the leaf: the next entry becomes a child of the target.
    Leaf {
        /// The new leaf; absent for the beginning.
        #[serialize_always]
        target_id: Option<EntryId>,
    },
    /// A change of the model.
    ModelChange {
        /// The provider.
        provider: String,
        /// The model.
        model_id: String,
    },
    /// A change of the thinking level.
    ThinkingLevelChange {
        /// `off`, `minimal`, `low`, `medium`, `high` or `xhigh`.
        thinking_level: String,
    },
}

impl NewEntry {
    /// Creates a message entry.
    pub fn message(message: RawJson) -> Self {
        Self::Message { message }
    }

    /// Creates an undo: from here on the branch reads as if the target entry did not exist.
    pub fn undo(target_id: &EntryId) -> Self {
        let data = format!("{{\"targetId\":{}}}", ctx_dialect::json::quote(target_id));
        Self::Custom { custom_type: UNDO_TYPE.into(), data: Some(RawJson::from_text(data)) }
    }

    /// Returns the entry's `type`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Compaction { .. } => "compaction",
            Self::BranchSummary { .. } => "branch_summary",
            Self::Custom { .. } => "custom",
            Self::CustomMessage { .. } => "custom_message",
            Self::Label { .. } => "label",
            Self::SessionInfo { .. } => "session_info",
            Self::ContextEdit { .. } => "context_edit",
            Self::Leaf { .. } => "leaf",
            Self::ModelChange { .. } => "model_change",
            Self::ThinkingLevelChange { .. } => "thinking_level_change",
        }
    }

    /// Returns the entry as one line with its line break.
    pub(crate) fn line(
        &self,
        id: &str,
        parent: Option<&EntryId>,
        now: Timestamp,
    ) -> Result<Vec<u8>> {
        let timestamp = iso(now)?;
        let line = EntryLine {
            kind: self.kind(),
            id,
            parent_id: parent,
            timestamp: &timestamp,
            body: self,
        };
        one_line(&line).map_err(|e| e.with("entry type", self.kind()))
    }
}

/// The common fields of every entry, in pi's order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: &'a str,
    parent_id: Option<&'a EntryId>,
    timestamp: &'a str,
    #[serde(flatten)]
    body: &'a NewEntry,
}

/// Returns `value` as JSON on one line with its line break.
pub(crate) fn one_line(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut out = serde_json::to_vec(value).map_err(|e| {
        Error::new(ErrorKind::InvalidInput, "the entry is not valid JSON")
            .source(e)
            .hint("message, data, details, content and replacement must each be one JSON value")
    })?;
    // Line breaks inside strings are escaped, so these are whitespace between tokens.
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &out[at..]) {
        out[at + found] = b' ';
        at += found + 1;
    }
    out.push(b'\n');
    Ok(out)
}

/// Formats a time as pi does: ISO 8601, UTC, milliseconds.
pub(crate) fn iso(at: Timestamp) -> Result<String> {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => Ok(format!("{time:.3}")),
        Err(e) => Err(Error::new(ErrorKind::InvalidInput, "the time is out of range")
            .with("milliseconds", at.0)
            .source(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(entry: &NewEntry) -> String {
        let parent = "0000000a".into();
        let line = entry.line("0000000b", Some(&parent), Timestamp(1765233665306)).unwrap();
        String::from_utf8(line).unwrap()
    }

    const HEAD: &str =
        r#""id":"0000000b","parentId":"0000000a","timestamp":"2025-12-08T22:41:05.306Z""#;

    #[test]
    fn entries_are_written_as_pi_writes_them() {
        let raw = |text: &str| RawJson::from_text(text);
        let cases = [
            (
                NewEntry::message(raw("{\"role\":\"user\",\n \"n\": 1.50}")),
                r#","message":{"role":"user",  "n": 1.50}"#,
            ),
            (
                NewEntry::Compaction {
                    summary: "a\nb".into(),
                    first_kept_entry_id: "00000001".into(),
                    tokens_before: 7,
                    tokens_after: None,
                    details: Some(raw("{}")),
                    from_hook: Some(false),
                    ctx: None,
                },
                r#","summary":"a\nb","firstKeptEntryId":"00000001","tokensBefore":7,"details":{},"fromHook":false"#,
            ),
            (
                NewEntry::BranchSummary {
                    from_id: "root".into(),
                    summary: String::new(),
                    details: None,
                    from_hook: None,
                },
                r#","fromId":"root","summary":"""#,
            ),
            (
                NewEntry::Custom { custom_type: "x".into(), data: Some(raw("[1]")) },
                r#","customType":"x","data":[1]"#,
            ),
            (
                NewEntry::undo(&"a\"b".into()),
                r#","customType":"ctx.undo","data":{"targetId":"a\"b"}"#,
            ),
            (
                NewEntry::CustomMessage {
                    custom_type: "x".into(),
                    content: raw("\"hi\""),
                    display: true,
                    details: None,
                },
                r#","customType":"x","content":"hi","display":true"#,
            ),
            (
                NewEntry::Label { target_id: "1".into(), label: Some("l".into()) },
                r#","targetId":"1","label":"l""#,
            ),
            (NewEntry::SessionInfo { name: None }, ""),
            (
                NewEntry::ContextEdit { target_id: "1".into(), replacement: None },
                r#","targetId":"1","replacement":null"#,
            ),
            (NewEntry::Leaf { target_id: None }, r#","targetId":null"#),
            (
                NewEntry::ModelChange { provider: "p".into(), model_id: "m".into() },
                r#","provider":"p","modelId":"m""#,
            ),
            (
                NewEntry::ThinkingLevelChange { thinking_level: "off".into() },
                r#","thinkingLevel":"off""#,
            ),
        ];
        for (entry, rest) in cases {
            let expected = format!("{{\"type\":\"{}\",{HEAD}{rest}}}\n", entry.kind());
            assert_eq!(line(&entry), expected);
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in ["", "{", "{} {}", "{}\n{}"] {
            let entry = NewEntry::message(RawJson::from_text(text));
            let error = entry.line("a", None, Timestamp(0)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}");
        }
        let late = NewEntry::SessionInfo { name: None };
        assert!(late.line("a", None, Timestamp(i64::MAX)).is_err());
    }

    #[test]
    fn deep_nesting_is_kept() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let entry = NewEntry::message(RawJson::from_text(deep.as_str()));
        assert!(line(&entry).contains(&deep));
    }
}
