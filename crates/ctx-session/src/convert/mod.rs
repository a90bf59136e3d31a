//! Writing a transcript: in another format, as a clean copy, as a ctx session, as a fork.

mod fork;
mod linear;
mod omissions;
mod repair;
mod session_copy;

use std::io::Write;
use std::sync::Arc;

use ctx_core::text::Slice;
use ctx_core::{Entry, Error, ErrorKind, Result, Role};
use serde::Serialize;

use crate::entry::{EntryKind, MessageEncoding};
use crate::formats::{Conversation, Format, Omissions, Target};
use crate::schema::write_error;
use crate::transcript::{Branch, Transcript};

pub use fork::fork;

/// The result of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionResult {
    /// The number of messages written.
    pub messages: usize,
    /// What the target format cannot represent, one sentence each.
    pub left_out: Vec<String>,
}

impl Transcript {
    /// Writes the transcript's messages in another format, and returns their number and the
    /// omissions. A conversion to the same format keeps everything: all branches of a pi session
    /// (version 3: every byte), all fields of a request body. Otherwise the main line is
    /// written, with system prompt, tools and messages that compactions removed, but no sidechains.
    ///
    /// A ctx session is a pi session whose header has a mark that lets ctx append to it. Only this
    /// target includes the overlay, that is, compactions and their undos. For any other format only
    /// the file itself is converted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for formats that are read only, [`ErrorKind::Io`] if writing
    /// fails, and errors from reading a message.
    pub fn convert<W: Write + ?Sized>(&self, to: Format, out: &mut W) -> Result<ConversionResult> {
        self.convert_with(to, false, out)
    }

    /// Like [`Transcript::convert`]. With `compacted`, writes the summaries of compactions in force
    /// instead of the messages that they replace. Only `ponybunny` can represent this, as its
    /// `compactedHistory`.
    ///
    /// # Errors
    ///
    /// Those of [`Transcript::convert`], and [`ErrorKind::InvalidInput`] if the target cannot
    /// represent compacted history.
    pub fn convert_with<W: Write + ?Sized>(
        &self,
        to: Format,
        compacted: bool,
        out: &mut W,
    ) -> Result<ConversionResult> {
        let mut omissions = Omissions::default();
        if to.takes_entries() {
            self.note_overlay_projections(&mut omissions);
        }
        let Some(target) = to.0.target else {
            let targets: Vec<_> = Format::targets().collect();
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("cannot write format '{to}': it is read-only"),
            )
            .hint(format!("formats that can be written: {}", targets.join(", "))));
        };
        if compacted && !to.holds_compacted_history() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!("'{to}' cannot represent compacted history"),
            )
            .hint("use ponybunny to write a summary with its kept messages"));
        }
        let messages = match target {
            Target::Session { overlay } if self.format.is_pi() => {
                omissions.unreadable(self);
                match overlay {
                    true => self.to_session(out, &mut omissions)?,
                    false => self.pi_copy(out)?,
                }
                self.message_entries()
            }
            _ if to == self.format && self.format.0.read.is_none() && !compacted => {
                omissions.unreadable(self);
                self.document_copy(out)?;
                self.message_entries()
            }
            _ => {
                omissions.outside_branch(self, to);
                match target {
                    Target::Session { .. } => self.to_pi(to, out, &mut omissions)?,
                    Target::Document { write, .. } => {
                        let (conversation, replaced) = self.conversation(compacted)?;
                        let (json, messages) = write(&conversation, &mut omissions)?;
                        if replaced > 0 {
                            omissions.add(format!("{replaced} messages replaced by a summary"));
                        }
                        text(out, &json)?;
                        messages
                    }
                }
            }
        };
        Ok(ConversionResult { messages, left_out: omissions.into_sentences() })
    }

    fn message_entries(&self) -> usize {
        self.file_entries().filter(|entry| entry.kind == EntryKind::Message).count()
    }

    /// Returns the summaries of PonyBunny's `compactedHistory`, which does not store the messages
    /// that they replace.
    pub(crate) fn summaries(&self) -> Vec<Arc<Entry>> {
        let summaries = (0..self.entries.len()).filter(|&i| {
            self.entries.get(i).is_some_and(|e| e.encoding == MessageEncoding::PonyBunnySummary)
        });
        self.items(summaries).into_iter().map(|item| item.entry).collect()
    }

    /// Returns the messages of the main line or, with `compacted`, of the context, and the
    /// number of messages that summaries replace.
    fn conversation(&self, compacted: bool) -> Result<(Conversation, usize)> {
        let mut conversation = Conversation {
            system: self.system_prompt.clone(),
            tools: self.tools.clone(),
            ..Conversation::default()
        };
        let line = self.main_line()?.into_iter().map(|item| item.entry);
        if !compacted {
            let summaries = self.summaries().into_iter();
            conversation.summaries = summaries.map(|entry| (entry, None)).collect();
            conversation.entries = line.collect();
            return Ok((conversation, 0));
        }
        let context = self.context(None)?;
        for entry in context.entries {
            if entry.message()?.role != Role::CompactionSummary {
                conversation.entries.push(entry);
                continue;
            }
            let replaced = match context.compaction.as_ref() == Some(entry.id()) {
                true => self.messages_before_compaction()?,
                false => None,
            };
            conversation.summaries.push((entry, replaced));
        }
        let replaced = line.count().saturating_sub(conversation.entries.len());
        Ok((conversation, replaced))
    }

    /// Returns the number of messages before the newest compaction in force.
    fn messages_before_compaction(&self) -> Result<Option<usize>> {
        let branch = Branch::of(self, self.path(None)?);
        let Some((&newest, earlier)) = branch.compactions.split_last() else { return Ok(None) };
        let from = earlier.last().map_or(0, |&at| branch.first_kept(self, at).place);
        let before = branch.path.slice(from..newest);
        let indices = before.iter().copied().filter(|&index| self.is_conversation_message(index));
        Ok(Some(self.messages_of(indices).len()))
    }
}

fn text<W: Write + ?Sized>(out: &mut W, json: &str) -> Result<()> {
    out.write_all(json.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(write_error)
}
