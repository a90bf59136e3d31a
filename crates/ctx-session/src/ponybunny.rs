//! PonyBunny's sessions, written: all that was said, or what compactions left of it.

use std::io::Write;

use ctx_core::{Message, Result, Role};
use ctx_dialect::json::{Fresh, array};
use ctx_dialect::ponybunny;

use crate::branch::Branch;
use crate::convert::text;
use crate::format::Format;
use crate::left_out::LeftOut;
use crate::transcript::Transcript;

impl Transcript {
    pub(crate) fn to_ponybunny<W: Write + ?Sized>(
        &self,
        out: &mut W,
        left_out: &mut LeftOut,
    ) -> Result<usize> {
        let mut messages = self.before_messages(left_out)?;
        let line = self.main_line()?;
        for item in &line {
            let message = item.entry.message()?;
            left_out.of_message(&message, Format::PonyBunny);
            messages.extend(ponybunny::write(&message));
        }
        let mut summaries = Vec::new();
        for entry in self.summaries() {
            summaries.push(ponybunny::write_summary(&*entry.message()?));
        }
        body(&messages, &summaries, out)?;
        Ok(line.len())
    }

    /// Writes what the newest compaction in force left: its summary in `compactedHistory`, and the
    /// messages it kept. Without one, all that was said.
    pub(crate) fn to_compacted_history<W: Write + ?Sized>(
        &self,
        out: &mut W,
        left_out: &mut LeftOut,
    ) -> Result<usize> {
        let mut messages = self.before_messages(left_out)?;
        let mut summaries = Vec::new();
        let mut written = 0;
        let context = self.context(None)?;
        for entry in &context.entries {
            let message = entry.message()?;
            if message.role == Role::CompactionSummary {
                let count = match context.compaction.as_ref() == Some(entry.id()) {
                    true => self.messages_before_compaction()?,
                    false => None,
                };
                summaries.push(summary(&message, count));
                continue;
            }
            written += 1;
            left_out.of_message(&message, Format::PonyBunny);
            messages.extend(ponybunny::write(&message));
        }
        let line = self.main_line()?.len();
        if line > written {
            left_out.say(format!("{} messages that a summary stands for", line - written));
        }
        body(&messages, &summaries, out)?;
        Ok(written)
    }

    /// The system prompt, as the first message.
    fn before_messages(&self, left_out: &mut LeftOut) -> Result<Vec<String>> {
        if self.tools()?.is_some() {
            left_out.say("the tools: ponybunny has no place for them".to_owned());
        }
        let system = self.system_prompt()?;
        let system = system.map(|text| ponybunny::write(&Message::text(Role::System, text)));
        Ok(system.unwrap_or_default())
    }

    /// How many messages there were when the newest compaction in force was made.
    fn messages_before_compaction(&self) -> Result<Option<usize>> {
        let branch = Branch::of(self, self.path(None)?);
        let Some((&newest, earlier)) = branch.compactions.split_last() else { return Ok(None) };
        let from = earlier.last().map_or(0, |&at| branch.first_kept(self, at).place);
        let before = branch.path.get(from..newest).unwrap_or_default();
        let said = before.iter().copied().filter(|&index| self.is_said(index));
        Ok(Some(self.messages_of(said).len()))
    }
}

fn body<W: Write + ?Sized>(messages: &[String], summaries: &[String], out: &mut W) -> Result<()> {
    let body =
        Fresh::new().raw("messages", array(messages)).raw("compactedHistory", array(summaries));
    text(out, &body.end())
}

/// A summary with the number of messages there were.
fn summary(message: &Message, count: Option<usize>) -> String {
    Fresh::new()
        .text("role", "system")
        .text("content", &message.plain_text())
        .plain_if("compactedAt", message.meta.timestamp.map(|t| t.0))
        .plain_if("originalMessageCount", count)
        .end()
}
