//! Requests in which a client asks its own model for a summary of the conversation.

use ctx_core::{Block, Message, Role};
use memchr::memmem;

use super::{OutgoingUnit, Request};

/// How a client asks for a summary, and the form that it reads. A request is recognised by the
/// beginning of its system prompt or of the user's last text, as recorded from the client.
#[derive(Debug)]
struct Form {
    client: &'static str,
    /// The beginning of the system prompt; empty if it is that of other requests.
    system: &'static str,
    /// The beginnings of the last text.
    begins: &'static [&'static str],
    /// What the last text contains besides.
    contains: &'static [&'static str],
    /// The element of an answer with the summary; empty if all of it is the summary.
    tag: &'static str,
    /// The beginning of a message of the user, if the history is in the last text instead of the
    /// messages before it.
    user: Option<&'static str>,
}

const SNAPSHOT: &str = "<state_snapshot>";

/// The beginning of the message in which Codex keeps a summary, after the messages of the user, Aider,
/// after its examples, and pi, where it comes back from a branch.
const KEEPS: [&str; 3] = [
    "Another language model started to solve this problem",
    "I spoke to you previously about a number of things.",
    "The following is a summary of a branch that this conversation came back from",
];

const FORMS: [Form; 7] = [
    // Claude Code 2.1.332: the history and the tools, as in other requests.
    Form {
        client: "claude-code",
        system: "",
        begins: &[
            "CRITICAL: Respond with TEXT ONLY.",
            "Your task is to create a detailed summary of the conversation",
            "Your task is to create a detailed summary of the RECENT portion of the conversation",
        ],
        contains: &["<analysis>", "<summary>"],
        tag: "summary",
        user: None,
    },
    // Gemini CLI 0.61.0: the history alone; the second request has the first answer in it.
    Form {
        client: "gemini-cli",
        system: "You are a specialized system component responsible for distilling chat history",
        begins: &[
            "Generate a new <state_snapshot>",
            "A previous <state_snapshot> exists",
            "Critically evaluate the <state_snapshot>",
        ],
        contains: &[SNAPSHOT],
        tag: "state_snapshot",
        user: None,
    },
    // Qwen Code 0.24.4: the history with its own system prompt, or with that of other requests.
    Form {
        client: "qwen-code",
        system: "",
        begins: &[
            "First, reason in your <analysis> block. Then, produce the <state_snapshot>",
            "You are the component that summarizes a conversation",
        ],
        contains: &[SNAPSHOT],
        tag: "state_snapshot",
        user: None,
    },
    // opencode 1.18.33: the history as text.
    Form {
        client: "opencode",
        system: "You are a context summarization agent.",
        begins: &["Here is the conversation so far:"],
        contains: &["</conversation>"],
        tag: "",
        user: Some("\n[User"),
    },
    // pi 0.87.1, and OpenClaw 2026.9.6, which has its core: a history, the beginning of a turn, or a
    // branch as text.
    Form {
        client: "pi",
        system: "You are a context summarization assistant.",
        begins: &["<conversation>", "# Conversation"],
        contains: &["\n[", "]: "],
        tag: "",
        user: Some("\n[User"),
    },
    // Aider 0.86.2: the oldest messages as text, with an earlier summary among them.
    Form {
        client: "aider",
        system: "*Briefly* summarize this partial conversation about programming.",
        begins: &["# USER", "# ASSISTANT"],
        contains: &[],
        tag: "",
        user: Some("# USER\n"),
    },
    // Codex 0.169 with a provider of its own: the history, without tools.
    Form {
        client: "codex",
        system: "",
        begins: &["You are performing a CONTEXT CHECKPOINT COMPACTION."],
        contains: &["summary"],
        tag: "",
        user: None,
    },
];

/// A history as text.
#[derive(Debug, Default)]
pub struct QuotedHistory {
    /// The text of its messages.
    pub text: String,
    /// Its messages: those of the user, and what stands between them.
    pub messages: Vec<Message>,
    /// What follows: an earlier summary, and the instructions.
    pub rest: String,
}

impl QuotedHistory {
    /// Returns a summary with the sections that the client looks for: OpenClaw refuses one without
    /// them.
    #[must_use]
    pub fn with_sections(&self, summary: String) -> String {
        let wanted = self.rest.split_once("with these exact section headings:\n");
        let headings = wanted.map_or("", |(_, rest)| rest).lines();
        let headings = headings.take_while(|line| line.starts_with("## "));
        headings.fold(summary, |summary, heading| {
            match summary.lines().any(|line| line.trim() == heading) {
                true => summary,
                false => format!("{}\n\n{heading}\nAs stated above.", summary.trim_end()),
            }
        })
    }
}

/// A client's request for a summary.
#[derive(Clone, Copy, Debug)]
pub struct SummaryRequest(&'static Form);

impl SummaryRequest {
    /// Whether a body may be one, by a search of its text.
    #[must_use]
    pub fn may_be(body: &str) -> bool {
        let mut begins = FORMS.iter().flat_map(|form| form.begins);
        begins.any(|begin| memmem::find(body.as_bytes(), begin.as_bytes()).is_some())
    }

    /// Whether a text of the user begins like one.
    #[must_use]
    pub fn begins(text: &str) -> bool {
        let mut begins = FORMS.iter().flat_map(|form| form.begins);
        begins.any(|begin| text.trim_start().starts_with(begin))
    }

    /// Whether a message has a summary that stands after the first messages, by a search of its text.
    #[must_use]
    pub fn is_kept_in(message: &str) -> bool {
        KEEPS.iter().any(|keeps| memmem::find(message.as_bytes(), keeps.as_bytes()).is_some())
    }

    /// Recognises one. What a tool result says is not the user's text.
    #[must_use]
    pub fn of(request: &Request<'_>) -> Option<Self> {
        let last = request.units.last()?.read();
        if last.role != Role::User && last.role != Role::ToolResult {
            return None;
        }
        let Some(Block::Text { text }) = last.blocks.last() else { return None };
        let text = text.trim_start();
        let system = || {
            let own = request.units.first().map(|unit| unit.read());
            let own = own.filter(|first| first.role == Role::System);
            request.system.clone().or(own.map(|first| first.plain_text())).unwrap_or_default()
        };
        let is = |form: &&Form| {
            form.begins.iter().any(|begin| text.starts_with(begin))
                && form.contains.iter().all(|part| text.contains(part))
                && (form.system.is_empty() || system().trim_start().starts_with(form.system))
        };
        FORMS.iter().find(is).map(Self)
    }

    /// Returns the name of the client.
    #[must_use]
    pub fn client(self) -> &'static str {
        self.0.client
    }

    /// Whether the history is a text in the request, instead of its messages.
    #[must_use]
    pub fn is_quoted(self) -> bool {
        self.0.user.is_some()
    }

    /// Returns the history that is a text in the request; `None` if it has its messages.
    #[must_use]
    pub fn quoted(self, request: &Request<'_>) -> Option<QuotedHistory> {
        let user = self.0.user?;
        let last = request.units.last()?.read().plain_text();
        let ends = ["\n</conversation>", "\n\n# Instructions\n"];
        let (text, rest) = ends.iter().find_map(|end| last.rsplit_once(end)).unwrap_or((&last, ""));
        let mut messages = Vec::new();
        for (nth, part) in text.split(user).enumerate() {
            // OpenClaw names the sender: `[User sender={"id":"1"}]: `.
            let labelled = part.split_once("]: ").filter(|_| nth > 0 && !user.ends_with('\n'));
            let said = labelled.map_or(part, |(_, said)| said);
            let ends = ["\n\n[", "\n# ASSISTANT\n"].iter().filter_map(|end| said.find(end));
            // No message of the user stands before the first label.
            let end = if nth == 0 { 0 } else { ends.min().unwrap_or(said.len()) };
            let (asked, others) = said.split_at(end);
            for (role, text) in [(Role::User, asked), (Role::Assistant, others)] {
                if !text.trim().is_empty() {
                    messages.push(Message::text(role, text.trim()));
                }
            }
        }
        Some(QuotedHistory { text: text.to_owned(), messages, rest: rest.to_owned() })
    }

    /// Returns the newest message, if it is such an answer already and only has to be repeated.
    #[must_use]
    pub fn repeated(self, request: &Request<'_>) -> Option<String> {
        const CHECK: &str = "Critically evaluate the <state_snapshot>";
        let (last, before) = request.units.split_last()?;
        let (asked, before) = (last.read().plain_text(), before.last()?.read());
        let is_made = before.role == Role::Assistant && asked.trim_start().starts_with(CHECK);
        let text = before.plain_text();
        self.summary(&text).filter(|_| is_made)?;
        Some(text)
    }

    /// Returns what the user wants the summary to focus on, as `/compact` of Claude Code and pi takes
    /// it.
    #[must_use]
    pub fn focus(self, request: &Request<'_>) -> Option<String> {
        let last = request.units.last()?.read().plain_text();
        let before = ["\nAdditional Instructions:\n", "\n\nAdditional focus: "];
        let (_, rest) = before.iter().find_map(|before| last.rsplit_once(before))?;
        let focus = rest.split("\n\nREMINDER:").next().unwrap_or(rest).trim();
        (!focus.is_empty()).then(|| focus.to_owned())
    }

    /// Returns the body without the text that asks; `None` if nothing else would be left.
    ///
    /// # Errors
    ///
    /// See [`Request::with_history`].
    pub fn history(self, request: &Request<'_>) -> ctx_core::Result<Option<String>> {
        let Some((last, before)) = request.units.split_last() else { return Ok(None) };
        let mut message = (*last.read()).clone();
        message.blocks.pop();
        let mut out: Vec<_> = (0..before.len()).map(OutgoingUnit::Unchanged).collect();
        if !message.blocks.is_empty() {
            out.push(OutgoingUnit::Message { message: &message, of: Some(before.len()) });
        }
        match out.is_empty() {
            true => Ok(None),
            false => request.with_history(&out, None).map(|body| Some(body.into_owned())),
        }
    }

    /// Returns the summary in an answer of the client's model, as later requests have it;
    /// `None` if there is none.
    #[must_use]
    pub fn summary(self, answer: &str) -> Option<&str> {
        let tag = self.0.tag;
        // Its reasoning may name the element.
        let ends = ["</analysis>", "</scratchpad>"].iter().filter_map(|end| answer.split_once(end));
        let rest = ends.map(|(_, rest)| rest).next_back().unwrap_or(answer);
        let inner = match tag.is_empty() {
            true => answer,
            false => {
                let (_, inner) = rest.split_once(&format!("<{tag}>"))?;
                inner.split_once(&format!("</{tag}>")).map_or(inner, |(inner, _)| inner)
            }
        };
        Some(inner.trim()).filter(|inner| !inner.is_empty())
    }

    /// Returns an answer with this summary, in the form that the client reads.
    #[must_use]
    pub fn answer(self, summary: &str) -> String {
        let tag = self.0.tag;
        if tag.is_empty() {
            return summary.to_owned();
        }
        let end = format!("</{tag}>");
        // The summary may quote the element.
        let inner = summary.replace(&end, &format!("<\\/{tag}>"));
        format!("<{tag}>\n{}\n{end}", inner.trim())
    }
}
