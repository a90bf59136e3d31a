//! Shows a turn while it runs.

use std::borrow::Cow;
use std::io::{self, Write};

use anstream::stdout;
use ctx_core::{CompactionTrigger, ToolCall, ToolOutput};
use ctx_runtime::{Event, Listener, Notice, NoticeKind};
use ctx_terminal::format::{counted, escaped, escaped_piece, shortened, thousands};
use ctx_terminal::out::{Out, terminal_columns};
use ctx_terminal::wrap::Wrap;
use serde_json::Value;

use super::Spinner;

/// The default progress text.
const WAITING: &str = "waiting for the model";

/// Maximum length of a displayed tool call.
const CALL_CHARS: usize = 120;

/// The shown part of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// The answer as it arrives, and tool calls.
    Everything,
    /// Notices only; the answer is printed once it is complete.
    Notices,
}

/// Shows a turn: the answer on stdout, everything else on stderr.
pub(super) struct Show<'a> {
    out: &'a Out,
    shown: Detail,
    verbose: bool,
    /// Whether the answer's last line is incomplete.
    is_open: bool,
    /// Whether a part of an answer was shown.
    has_said: bool,
    trigger: Option<CompactionTrigger>,
    spinner: Spinner,
    failed: Option<io::Error>,
    wrap: Wrap,
}

impl<'a> Show<'a> {
    pub(super) fn new(out: &'a Out, shown: Detail, verbose: bool, spinner: &Spinner) -> Self {
        Self {
            out,
            shown,
            verbose,
            is_open: false,
            has_said: false,
            trigger: None,
            spinner: spinner.clone(),
            failed: None,
            wrap: Wrap::new(terminal_columns()),
        }
    }

    /// Shows the progress indicator if the model is called; some commands do not call it.
    pub(super) fn waiting_if(mut self, asks_model: bool) -> Self {
        if asks_model {
            self.wait(WAITING);
        }
        self
    }

    /// Ends the turn. Returns whether a part of an answer was shown.
    ///
    /// # Errors
    ///
    /// If the answer could not be written.
    pub(super) fn end(mut self) -> io::Result<bool> {
        self.close();
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.has_said),
        }
    }

    fn wait(&mut self, what: impl Into<Cow<'static, str>>) {
        self.close();
        if self.shown == Detail::Everything {
            self.spinner.show(self.out.waiting(what));
        }
    }

    /// Ends the current line before other output.
    fn close(&mut self) {
        self.spinner.clear();
        if std::mem::take(&mut self.is_open) {
            let rest = self.wrap.push("\n");
            self.print(&rest);
        }
    }

    fn print(&mut self, text: &str) {
        let mut out = stdout().lock();
        let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Err(error) = printed {
            self.failed.get_or_insert(error);
        }
    }

    fn say(&mut self, text: &str) {
        if self.shown == Detail::Notices {
            return;
        }
        self.spinner.clear();
        let text = escaped_piece(text);
        let printed = self.wrap.push(&text);
        self.print(&printed);
        self.is_open = !text.ends_with('\n');
        self.has_said = true;
    }

    fn notice(&mut self, notice: &Notice) {
        self.close();
        match notice.kind {
            NoticeKind::Retry | NoticeKind::Session | NoticeKind::Window => {
                self.out.note(&notice.text);
            }
            _ => self.out.warn(&notice.text),
        }
    }

    fn tool_ended(&mut self, output: &ToolOutput) {
        if self.verbose {
            self.close();
            let text = plain(output);
            let first = shortened(text.lines().next().unwrap_or_default(), CALL_CHARS);
            self.out.aside(match output.is_error {
                true => format!("  failed: {first}"),
                false => format!("  returned {}", counted(text.chars().count(), "character")),
            });
        }
        self.wait(WAITING);
    }
}

impl Listener for Show<'_> {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.say(text),
            Event::Restarted => {
                self.close();
                // The text shown so far is discarded. The answer follows.
                if std::mem::take(&mut self.has_said) {
                    self.out.aside("(the answer is restarted)");
                }
                self.wait(WAITING);
            }
            Event::ToolBegan(call) => {
                self.close();
                if self.verbose || self.shown == Detail::Everything {
                    self.out.aside(format!("· {}", described(call)));
                }
                self.wait(running(&call.name));
            }
            Event::ToolEnded(_, output) => self.tool_ended(output),
            Event::Notice(notice) => self.notice(notice),
            Event::CompactionBegan { trigger, .. } => {
                self.trigger = Some(trigger);
                self.wait("compacting");
            }
            Event::CompactionEnded { compacted, before, after, count } => {
                self.close();
                let by_hand = self.trigger.take() == Some(CompactionTrigger::Manual);
                if self.verbose && compacted && !by_hand {
                    self.out.aside(format!(
                        "🧹 Auto-compaction complete (count {count}): {} tokens became {}",
                        thousands(before.get()),
                        thousands(after.get()),
                    ));
                }
                match by_hand {
                    true => self.close(),
                    false => self.wait(WAITING),
                }
            }
            _ => {}
        }
    }
}

/// The progress text while a tool runs.
fn running(name: &str) -> String {
    format!("running {} (Ctrl-C stops it)", shortened(name, CALL_CHARS))
}

/// Returns the text of a tool's result.
fn plain(output: &ToolOutput) -> String {
    let texts = output.content.iter().filter_map(|block| match block {
        ctx_core::Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Formats a call on one line: the tool, and its subject.
fn described(call: &ToolCall) -> String {
    let arguments: Option<Value> = serde_json::from_str(call.arguments.as_str()).ok();
    let about = arguments.as_ref().and_then(|arguments| {
        ["command", "path"].iter().find_map(|key| arguments.get(key)?.as_str())
    });
    let about = about.unwrap_or_else(|| call.arguments.as_str());
    format!("{} {}", escaped(&call.name), shortened(about, CALL_CHARS))
}

#[cfg(test)]
mod tests {
    use ctx_core::RawJson;

    use super::*;

    #[test]
    fn the_indicator_names_the_model_or_the_running_tool() {
        let (out, spinner) = (Out::silent(), Spinner::default());
        let show = || Show::new(&out, Detail::Everything, false, &spinner);
        let command = show().waiting_if(false);
        assert_eq!(spinner.words(), None);
        drop(command);
        let mut turn = show().waiting_if(true);
        assert_eq!(spinner.words().as_deref(), Some("waiting for the model"));
        let call = call(r#"{"command":"sleep 9"}"#);
        turn.on(Event::ToolBegan(&call));
        assert_eq!(spinner.words().as_deref(), Some("running bash (Ctrl-C stops it)"));
        turn.on(Event::ToolEnded(&call, &ToolOutput::text("")));
        assert_eq!(spinner.words().as_deref(), Some("waiting for the model"));
        turn.end().unwrap();
        assert_eq!(spinner.words(), None);
    }

    fn call(arguments: &str) -> ToolCall {
        ToolCall::new("1", "bash", RawJson::from_text(arguments))
    }

    #[test]
    fn a_call_is_shown_by_its_subject() {
        assert_eq!(described(&call(r#"{"command":"ls\n-l"}"#)), "bash ls\\n-l");
        assert_eq!(described(&call(r#"{"x":1}"#)), r#"bash {"x":1}"#);
    }
}
