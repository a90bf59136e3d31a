//! A transcript in another format.

use std::io::Write;
use std::sync::Arc;

use ctx_core::{Entry, Error, ErrorKind, Message, Result, Role};
use ctx_dialect::json::{Fresh, array};
use ctx_dialect::{anthropic, openai_chat, tools};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::entry::EntryKind;
use crate::format::Format;
use crate::left_out::LeftOut;
use crate::load::Recipe;
use crate::repair::write_error;
use crate::transcript::Transcript;

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Converted {
    /// How many messages were written.
    pub messages: usize,
    /// What the target has no place for, one sentence each.
    pub left_out: Vec<String>,
}

/// How a transcript is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvertOptions {
    /// Without what compactions in force left out: PonyBunny's `compactedHistory` stands for it.
    pub compacted: bool,
}

impl Transcript {
    /// Writes the transcript's messages in another format, and says how many, and what was left
    /// out. Into its own format a transcript goes whole: a pi session with all branches and, in
    /// version 3, byte for byte; a request body with all its fields. Otherwise the main line is
    /// written, with everything that compactions left out, the system prompt and the tools;
    /// sidechains are not.
    ///
    /// A session of ctx is a pi session with a mark in its header, to which ctx may append. Into
    /// such a one goes also what ctx keeps beside the file: compactions, and what undoes them. In
    /// any other format the copy is of the file alone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for formats that are read only, [`ErrorKind::Io`] if writing
    /// fails, and what reading a message may give.
    pub fn convert<W: Write + ?Sized>(&self, to: Format, out: &mut W) -> Result<Converted> {
        self.convert_with(to, ConvertOptions::default(), out)
    }

    /// [`Transcript::convert`], with options.
    ///
    /// # Errors
    ///
    /// As [`Transcript::convert`]; and [`ErrorKind::InvalidInput`] for an option that the target
    /// does not have.
    pub fn convert_with<W: Write + ?Sized>(
        &self,
        to: Format,
        options: ConvertOptions,
        out: &mut W,
    ) -> Result<Converted> {
        let mut left_out = LeftOut::default();
        if to == Format::Ctx {
            self.forms_left(&mut left_out);
        }
        let messages = match to {
            Format::ClaudeCode | Format::Codex | Format::GeminiCli | Format::Opencode => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("'{to}' can be read but not written"),
                )
                .hint("formats that can be written: ctx, pi, openai, anthropic, ponybunny"));
            }
            Format::PonyBunny if options.compacted => {
                left_out.around(self, to);
                self.to_compacted_history(out, &mut left_out)?
            }
            _ if options.compacted => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("'{to}' has no place for history that was compacted"),
                )
                .hint("a summary and what it kept can be written as ponybunny"));
            }
            Format::Ctx if self.format == Format::Pi => {
                left_out.lost(self);
                self.to_session(out, &mut left_out)?;
                self.message_entries()
            }
            _ if to == self.format => {
                left_out.lost(self);
                match to {
                    Format::Pi => self.pi_copy(out)?,
                    _ => self.document_copy(out)?,
                }
                self.message_entries()
            }
            _ => {
                left_out.around(self, to);
                match to {
                    Format::Pi | Format::Ctx => self.to_pi(to, out, &mut left_out)?,
                    Format::PonyBunny => self.to_ponybunny(out, &mut left_out)?,
                    _ => self.to_request(to, out, &mut left_out)?,
                }
            }
        };
        Ok(Converted { messages, left_out: left_out.end() })
    }

    /// Writes a request: the messages alone, or a body where there is more to say.
    fn to_request<W: Write + ?Sized>(
        &self,
        to: Format,
        out: &mut W,
        left_out: &mut LeftOut,
    ) -> Result<usize> {
        let messages = self.all_said()?;
        for message in messages.iter().filter(|message| message.role != Role::System) {
            left_out.of_message(message, to);
        }
        let mut body = Fresh::new();
        let (list, is_body) = match to {
            Format::Anthropic => {
                let written = anthropic::write(&messages);
                body = body.text_if("system", written.system.as_deref());
                (written.messages, true)
            }
            _ => (openai_chat::write(&messages), false),
        };
        let tools = self.written_tools(to, left_out);
        let list = array(list.iter().map(|m| m.as_str()));
        match (is_body, &tools) {
            (false, None) => text(out, &list)?,
            _ => {
                if let Some(tools) = &tools {
                    body = body.raw("tools", tools);
                }
                text(out, &body.raw("messages", list).end())?;
            }
        }
        Ok(messages.iter().filter(|m| m.role != Role::System).count())
    }

    /// The tools as the target takes them.
    fn written_tools(&self, to: Format, left_out: &mut LeftOut) -> Option<String> {
        let recorded = self.tools().ok()??;
        let raw: &RawValue = serde_json::from_str(&recorded).ok()?;
        let (written, others) = match to {
            Format::Anthropic => tools::to_anthropic(raw),
            _ => tools::to_openai(raw),
        };
        if !others.is_empty() {
            left_out.say(format!("{} tools that are no functions", others.len()));
        }
        (written != "[]").then_some(written)
    }

    fn message_entries(&self) -> usize {
        self.file_entries().filter(|entry| entry.kind == EntryKind::Message).count()
    }

    /// Every message of the main line. Summaries of history that is not in the file are part of it.
    fn said(&self) -> Result<Vec<Arc<Entry>>> {
        let mut entries = self.summaries();
        entries.extend(self.main_line()?.into_iter().map(|item| item.entry));
        Ok(entries)
    }

    /// PonyBunny's `compactedHistory`: what it sums up is gone.
    pub(crate) fn summaries(&self) -> Vec<Arc<Entry>> {
        let summaries = (0..self.entries.len())
            .filter(|&i| self.entries.get(i).is_some_and(|e| e.recipe == Recipe::PonyBunnySummary));
        self.items(summaries).into_iter().map(|item| item.entry).collect()
    }

    fn all_said(&self) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        if let Some(system) = self.system_prompt()? {
            messages.push(Message::text(Role::System, system));
        }
        for entry in self.said()? {
            messages.push(entry.message()?.as_ref().clone());
        }
        Ok(messages)
    }
}

pub(crate) fn text<W: Write + ?Sized>(out: &mut W, json: &str) -> Result<()> {
    out.write_all(json.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(write_error)
}
