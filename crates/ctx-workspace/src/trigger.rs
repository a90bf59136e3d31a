//! Detects messages that ask for the workspace.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use ctx_search::question::{is_query, query_text, without_prefixes};

/// Why a message asks for the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger<'a> {
    /// It begins with a command, such as `/context`.
    Command(&'a str),
    /// It names a file in quotes.
    File(&'a str),
    /// It contains a word that refers to existing content.
    Word(&'a str),
}

/// Returns why a user message asks for the workspace; `None` if it does not. Ignores gateway
/// prefixes.
///
/// ```
/// use ctx_workspace::{Trigger, should_search};
///
/// assert_eq!(should_search("what does `src/main.rs` do?"), Some(Trigger::File("src/main.rs")));
/// assert_eq!(should_search("/context payments"), Some(Trigger::Command("/context")));
/// assert_eq!(should_search("参考一下"), Some(Trigger::Word("参考")));
/// assert_eq!(should_search("write a poem"), None);
/// ```
#[must_use]
pub fn should_search(message: &str) -> Option<Trigger<'_>> {
    let message = without_prefixes(message);
    let triggers = TRIGGERS.as_ref()?;
    let begins = |command: &&String| message.starts_with(command.as_str());
    if let Some(command) = triggers.commands.iter().find(begins) {
        return message.get(..command.len()).map(Trigger::Command);
    }
    if let Some(name) = triggers.file.captures(message).and_then(|found| found.get(1)) {
        return Some(Trigger::File(name.as_str()));
    }
    triggers.words.find(message).map(|found| Trigger::Word(found.as_str()))
}

/// Returns the question in a message, without a leading command and gateway prefixes. Returns
/// `None` if it is too short to search for.
#[must_use]
pub fn question_of(message: &str) -> Option<&str> {
    let message = query_text(message);
    let command = TRIGGERS.as_ref().and_then(|triggers| triggers.command(message));
    let question = command.map_or(message, |(_, rest)| rest).trim();
    is_query(question).then_some(question)
}

/// The patterns, built from the data. A test checks that there are some.
static TRIGGERS: LazyLock<Option<Triggers>> = LazyLock::new(|| {
    let data: Data = toml::from_str(include_str!("triggers.toml")).ok()?;
    Triggers::new(&data)
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    commands: Vec<String>,
    quotes: Vec<String>,
    extensions: Vec<String>,
    anywhere: Vec<String>,
    words: Vec<String>,
}

struct Triggers {
    commands: Vec<String>,
    file: Regex,
    words: Regex,
}

impl Triggers {
    fn new(data: &Data) -> Option<Self> {
        let any = |texts: &[String]| {
            texts.iter().map(|text| regex::escape(text)).collect::<Vec<_>>().join("|")
        };
        let (quotes, extensions) = (any(&data.quotes), any(&data.extensions));
        let file = format!(r"(?:{quotes})([\w/\\.-]+\.(?:{extensions}))(?:{quotes})");
        let (latin, other): (Vec<String>, Vec<String>) =
            data.words.iter().cloned().partition(|word| word.is_ascii());
        // Chinese is written without spaces, so another word may follow directly.
        let (anywhere, other) = (any(&data.anywhere), any(&other));
        let words = format!(r"{anywhere}|{other}|(?-u:\b)(?i:{})(?-u:\b)", any(&latin));
        Some(Self {
            commands: data.commands.clone(),
            file: Regex::new(&file).ok()?,
            words: Regex::new(&words).ok()?,
        })
    }

    /// Returns the command at the beginning of a message, and the rest.
    fn command<'m>(&self, message: &'m str) -> Option<(&'m str, &'m str)> {
        let length = self
            .commands
            .iter()
            .find(|command| {
                let rest = message.strip_prefix(command.as_str());
                rest.is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace))
            })?
            .len();
        message.split_at_checked(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trigger_patterns_are_loaded() {
        assert!(TRIGGERS.is_some());
    }

    #[test]
    fn the_triggers_of_the_original_system_work_here() {
        for (message, trigger) in [
            ("see `src/app.ts`", Trigger::File("src/app.ts")),
            ("see \"a-b/c.d.json\" now", Trigger::File("a-b/c.d.json")),
            ("see 'README.md'", Trigger::File("README.md")),
            ("看看「配置.toml」", Trigger::File("配置.toml")),
            ("/context how do we deploy", Trigger::Command("/context")),
            ("/remember", Trigger::Command("/remember")),
            ("/recall\nthe plan", Trigger::Command("/recall")),
            ("请参考文档", Trigger::Word("参考")),
            ("查看日志", Trigger::Word("查看")),
            ("打开文件吧", Trigger::Word("打开文件")),
            ("之前的方案", Trigger::Word("之前的")),
            ("as I said Earlier", Trigger::Word("Earlier")),
            ("我earlier说过", Trigger::Word("earlier")),
            ("the earlierness of it", Trigger::Word("earlier")),
            ("/contextual ads", Trigger::Command("/context")),
            ("see `app.py'", Trigger::File("app.py")),
            ("[Slack 2026-02-10] /context deploy", Trigger::Command("/context")),
        ] {
            assert_eq!(should_search(message), Some(trigger), "{message}");
        }
    }

    #[test]
    fn other_messages_are_not_triggers() {
        for message in [
            "",
            "hello",
            "see src/app.ts",
            "see `src/app`",
            "please /context",
            "refer together",
            "my notesbook",
            "it costs `1.5`",
        ] {
            assert_eq!(should_search(message), None, "{message}");
        }
    }

    #[test]
    fn the_question_is_the_text_after_the_command() {
        assert_eq!(question_of("/context how do we deploy?"), Some("how do we deploy?"));
        assert_eq!(question_of("参考 `a.md`"), Some("参考 `a.md`"));
        assert_eq!(question_of("/contextual ads"), Some("/contextual ads"));
        assert_eq!(question_of("/context"), None);
        assert_eq!(question_of("/recall  x"), None);
    }

    #[test]
    fn a_message_of_a_megabyte_is_read_once() {
        let long = "`".repeat(1 << 20);
        assert_eq!(should_search(&long), None);
        let long = format!("{} earlier", "`a.".repeat(300_000));
        assert_eq!(should_search(&long), Some(Trigger::Word("earlier")));
    }
}
