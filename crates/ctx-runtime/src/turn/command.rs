//! Commands: messages for the runtime, not for the model.

use std::sync::Arc;

use ctx_core::printable::thousands;
use ctx_core::{
    CompactResult, Manifest, MemoryStore, NodeState, RecallRequest, Result, SnippetSource,
};
use ctx_layers::compaction::Details;
use ctx_session::NewEntry;

use super::Turn;
use super::context::fullness;
use crate::host::{Input, NoticeKind};
use crate::lookup::remember;
use crate::session::OpenReason;
use crate::sync::spawn_blocking;

/// Maximum number of search results.
const MAX_RESULTS: usize = 5;

/// The commands with their descriptions, for a host that lists them.
pub const COMMANDS: [(&str, &str); 9] = [
    ("/compact [FOCUS]", "replace old history by a summary that focuses on the given text"),
    ("/context [QUERY]", "list what the next request contains; with a query, search the workspace"),
    ("/status", "show the session's settings and how full its window is"),
    ("/remember TEXT", "store a fact"),
    ("/recall QUERY", "search archived messages and facts"),
    ("/undo", "undo the newest compaction"),
    (
        "/branch [ENTRY]",
        "continue after another entry, with a summary of the old branch; list the branches",
    ),
    ("/new [MESSAGE]", "start a new session under this name"),
    ("/reset [MESSAGE]", "the same"),
];

/// A command with its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `/compact [focus]`
    Compact(Option<String>),
    /// `/context [query]`
    Context(Option<String>),
    /// `/status`
    Status,
    /// `/remember TEXT`
    Remember(Option<String>),
    /// `/recall QUERY`
    Recall(Option<String>),
    /// `/undo`
    Undo,
    /// `/branch [entry]`
    Branch(Option<String>),
    /// `/new [message]` and `/reset [message]`
    New(Option<String>),
}

/// The result of a command.
pub(super) enum CommandResult {
    /// The command is complete.
    Done(String),
    /// The model must answer this message.
    Ask(String),
}

/// Returns why a message opens its session. Commands read or change a session; they do not reset an
/// expired one.
pub(crate) fn open_reason(input: &Input) -> OpenReason {
    match Command::of(input) {
        Some(Command::New(_)) => OpenReason::NewSession,
        Some(_) => OpenReason::Existing,
        None => OpenReason::Message,
    }
}

impl Command {
    /// Parses a message as a command. Other messages that begin with a slash are not commands.
    pub(super) fn of(input: &Input) -> Option<Self> {
        if input.is_literal {
            return None;
        }
        let [ctx_core::Block::Text { text }] = input.message().blocks.as_slice() else {
            return None;
        };
        let text = text.trim();
        let (word, rest) = match text.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, Some(rest.trim().to_owned())),
            None => (text, None),
        };
        let rest = rest.filter(|rest| !rest.is_empty());
        Some(match word {
            "/compact" => Self::Compact(rest),
            "/context" => Self::Context(rest),
            "/status" => Self::Status,
            "/remember" => Self::Remember(rest),
            "/recall" => Self::Recall(rest),
            "/undo" => Self::Undo,
            "/branch" => Self::Branch(rest),
            "/new" | "/reset" => Self::New(rest),
            _ => return None,
        })
    }
}

impl Turn<'_> {
    /// Runs a command. It adds no message to the session.
    pub(super) async fn run_command(&mut self, command: Command) -> Result<CommandResult> {
        Ok(CommandResult::Done(match command {
            Command::New(Some(message)) => return Ok(CommandResult::Ask(message)),
            Command::New(None) => "A new session was started.".to_owned(),
            Command::Compact(focus) => {
                let done = self.flush_and_compact(focus.as_deref()).await?;
                Self::compacted(&done)
            }
            Command::Context(None) => self.list_context().await?,
            Command::Context(Some(query)) => self.search(&query).await?,
            Command::Status => self.status().await?,
            Command::Remember(Some(text)) => self.remember(text).await?,
            Command::Remember(None) => "Usage: /remember TEXT".to_owned(),
            Command::Recall(Some(query)) => self.recall(query).await?,
            Command::Recall(None) => "Usage: /recall QUERY".to_owned(),
            Command::Undo => self.undo().await?,
            Command::Branch(None) => self.branches().await?,
            Command::Branch(Some(entry)) => self.branch(&entry).await?,
        }))
    }

    fn compacted(done: &CompactResult) -> String {
        match done.result.as_ref().filter(|_| done.compacted) {
            // The CoPaw format.
            Some(compacted) => {
                let details = compacted.details.as_ref().and_then(Details::from_json);
                let messages = details.map_or_else(String::new, |details| {
                    format!("- Messages compacted: {}\n", details.receipt.messages)
                });
                let summary = &compacted.summary;
                format!("**Compact Complete!**\n\n{messages}**Compressed Summary:**\n{summary}")
            }
            None => {
                format!("Nothing was compacted: {}.", done.reason.as_deref().unwrap_or("no reason"))
            }
        }
    }

    /// Returns the manifest of the next request, as far as it is known.
    pub(super) async fn manifest(&mut self) -> Result<Manifest> {
        let view = self.session.take_view(&self.pool.home).await?;
        let manifest = view.manifest();
        self.session.view = Some(view);
        Ok(manifest)
    }

    async fn status(&mut self) -> Result<String> {
        let manifest = self.manifest().await?;
        let setup = self.session.setup()?;
        Ok(format!(
            "session {} ({})\nmodel {}, window {}, {} kept free for the answer\nengine {}, profile \
             {}\n{}, {} messages\ncompactions: {}",
            self.session.id,
            self.session.key,
            self.session.overrides.models[setup.model].card().name,
            thousands(manifest.window.get()),
            thousands(manifest.reserve.get()),
            setup.engine.info().id,
            setup.resolved.profile.name(),
            fullness(manifest.tokens, &manifest),
            manifest.entries.iter().filter(|entry| entry.state != NodeState::Dropped).count(),
            self.session.compactions,
        ))
    }

    async fn search(&mut self, query: &str) -> Result<String> {
        let Some(workspace) = self.session.setup()?.workspace.clone() else {
            return Ok("No workspace is configured: set agents.defaults.workspace.".to_owned());
        };
        let answer = workspace.search(query, MAX_RESULTS).await?;
        for warning in answer.warnings {
            self.notify(NoticeKind::Engine, warning);
        }
        if answer.snippets.is_empty() {
            return Ok(format!("Nothing in the workspace matches {query:?}."));
        }
        let blocks = answer.snippets.iter().map(|found| {
            let from = match found.source {
                SnippetSource::Sessions => "session ",
                _ => "",
            };
            let (path, first, last) = (&found.path, found.first_line, found.last_line);
            format!("{from}{path}:{first}-{last} ({:.2})\n{}", found.score, found.text.trim_end())
        });
        Ok(blocks.collect::<Vec<_>>().join("\n\n"))
    }

    async fn remember(&mut self, text: String) -> Result<String> {
        let memory = self.pool.agents.memory(&self.session.agent);
        let Some(facts) = memory.and_then(|memory| memory.facts) else {
            return Ok("The fact was not stored: the facts could not be read.".to_owned());
        };
        let is_recalled = self.session.setup()?.memory.store().is_some();
        let (session, now) = (self.session.id.clone(), self.now());
        let (_, learned) = spawn_blocking(move || remember(&facts, &session, &text, now)).await?;
        let done = if learned.is_nothing() { "Already known." } else { "Remembered." };
        Ok(match is_recalled {
            true => done.to_owned(),
            false => format!(
                "{done} But long-term memory is disabled, so only /recall finds it. With \
                 agents.defaults.memoryContext.enabled: true, it is added to requests."
            ),
        })
    }

    async fn recall(&mut self, query: String) -> Result<String> {
        // An explicit search works even if automatic recall is disabled.
        let counter = self.session.setup()?.resolved.counter;
        let own = || {
            let memory = self.pool.agents.memory(&self.session.agent)?;
            Some(Arc::new(memory.of_session(&self.session.id, counter)) as Arc<dyn MemoryStore>)
        };
        let Some(memory) = self.session.setup()?.memory.store().cloned().or_else(own) else {
            return Ok("Memory could not be opened.".to_owned());
        };
        let request = RecallRequest {
            query,
            now: self.now(),
            passages: MAX_RESULTS,
            facts: MAX_RESULTS,
            ..RecallRequest::default()
        };
        let found = memory.recall(request).await?;
        for warning in found.warnings {
            self.notify(NoticeKind::Engine, warning);
        }
        let facts = found.facts.iter().map(|fact| format!("[{}] {}", fact.kind, fact.text));
        let passages = found.passages.iter().map(|p| format!("({}) {}", p.role, p.text.trim_end()));
        let lines: Vec<_> = facts.chain(passages).collect();
        Ok(if lines.is_empty() { "No matches.".to_owned() } else { lines.join("\n\n") })
    }

    /// Undoes the newest compaction.
    async fn undo(&mut self) -> Result<String> {
        let (home, path) = (self.pool.home.clone(), self.session.path.clone());
        let in_force = spawn_blocking(move || {
            let transcript = ctx_session::open(&home, &path)?;
            Ok(transcript.context(None)?.compaction)
        });
        let Some(compaction) = in_force.await? else {
            return Ok("No compaction to undo.".to_owned());
        };
        let now = self.now();
        self.session.log().append(&NewEntry::undo(&compaction), now)?;
        self.session.commit().await?;
        self.session.view = None;
        Ok(format!("The compaction {compaction} was undone: its messages are restored."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_command_is_understood() {
        for (usage, _) in COMMANDS {
            let word = usage.split(' ').next().unwrap();
            assert!(Command::of(&word.into()).is_some(), "{usage}");
        }
        let words = COMMANDS.map(|(usage, _)| usage.split(' ').next().unwrap());
        let all = "/compact /context /status /remember /recall /undo /branch /new /reset";
        assert_eq!(words.join(" "), all);
    }

    #[test]
    fn a_command_is_a_message_whose_first_word_is_its_name() {
        for (text, command) in [
            ("/compact", Some(Command::Compact(None))),
            ("  /compact  the tests \n", Some(Command::Compact(Some("the tests".into())))),
            ("/context", Some(Command::Context(None))),
            ("/reset", Some(Command::New(None))),
            ("/new hello there", Some(Command::New(Some("hello there".into())))),
            ("/compactly", None),
            ("/usr/bin is full", None),
            ("say /new", None),
            ("", None),
        ] {
            assert_eq!(Command::of(&text.into()), command, "{text:?}");
        }
        assert_eq!(Command::of(&Input::literal("/new")), None);
        let two = vec![ctx_core::Block::text("/new"), ctx_core::Block::text("x")];
        assert_eq!(Command::of(&two.into()), None);
    }
}
