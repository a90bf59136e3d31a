//! The parts of a transcript that a conversion omits, other than parts of converted messages.

use std::collections::HashSet;

use ctx_core::Role;

use crate::entry::{Audience, Detail, EntryKind, MessageEncoding};
use crate::formats::{Format, Omissions};
use crate::transcript::Transcript;

/// Fields of a request body that the target represents elsewhere.
const PLACED: [&str; 2] = ["system", "tools"];

impl Omissions {
    /// Adds the omitted parts other than messages of the main line.
    pub(crate) fn outside_branch(&mut self, transcript: &Transcript, to: Format) {
        self.entries(transcript, to);
        self.fields(transcript, to);
        self.unreadable(transcript);
    }

    /// Adds the number of unreadable bytes, if any.
    pub(crate) fn unreadable(&mut self, transcript: &Transcript) {
        let bytes: u64 = transcript.lost.iter().map(|span| u64::from(span.len)).sum();
        if bytes > 0 {
            self.add(format!("{bytes} unreadable bytes"));
        }
    }

    fn entries(&mut self, transcript: &Transcript, to: Format) {
        let line: HashSet<usize> = transcript.path(None).unwrap_or_default().into_iter().collect();
        let (mut branches, mut shown, mut summaries, mut beside) = (0, 0, 0, 0);
        let mut kinds: Vec<&str> = Vec::new();
        let mut others = 0;
        for (index, entry) in transcript.entries.iter().enumerate() {
            let summary = matches!(entry.detail.as_deref(), Some(Detail::Compaction { .. }));
            let answer = entry.role == Some(Role::Assistant);
            match entry.kind {
                EntryKind::SystemPrompt => {}
                _ if entry.overlay => beside += usize::from(summary && !to.takes_entries()),
                _ if entry.encoding == MessageEncoding::PonyBunnySummary => {}
                _ if summary => summaries += usize::from(!to.is_pi()),
                _ if entry.is_message() && !line.contains(&index) => {
                    branches += usize::from(entry.head.is_none());
                }
                _ if entry.is_message() && entry.audience == Audience::People => {
                    shown += usize::from(!to.is_pi() || !answer);
                }
                _ if entry.is_message() => {}
                _ => {
                    others += 1;
                    let kind = entry.kind.name();
                    if kinds.len() < 4 && !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
            }
        }
        let branch = match transcript.format.0.has_sidechains {
            true => "of sidechains (subagents)",
            false => "on other branches",
        };
        self.count(branches, "message", branch);
        self.count(shown, "message", "that the agent showed only to the user");
        self.count(
            summaries,
            "summary",
            "of compactions; the original messages are written instead",
        );
        self.count(beside, "compaction", "stored in the overlay of the file");
        self.count(others, "entry", &format!("without a message ({})", kinds.join(", ")));
    }

    fn fields(&mut self, transcript: &Transcript, to: Format) {
        // A session records these settings of a request in its header or its answers.
        let placed = |key: &str| {
            PLACED.contains(&key) || (to.is_pi() && matches!(key, "model" | "sessionId" | "id"))
        };
        let keys = transcript.body.iter().map(|(key, _)| key.as_str());
        let keys: Vec<_> = keys.filter(|key| !placed(key)).collect();
        if !keys.is_empty() {
            self.add(format!("fields that {to} cannot represent: {}", keys.join(", ")));
        }
    }
}
