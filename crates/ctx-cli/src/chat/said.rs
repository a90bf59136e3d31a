//! What a line means: something for the model, or a command.

use ctx_core::{Error, ErrorKind, Result};
use ctx_runtime::{COMMANDS, Input};

use crate::words::shortened;

/// Commands that are for the terminal, not for the runtime.
pub(super) const HERE: [(&str, &str); 2] = [
    ("/help", "list the commands (only here, not with --prompt)"),
    ("/quit", "end the conversation (only here); so does Ctrl-D"),
];

/// Another word for `/quit`.
const EXIT: &str = "/exit";

/// How much of an unknown command is quoted.
const WORD_CHARS: usize = 40;

/// Where something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Terminal,
    Script,
}

/// What was said.
#[derive(Debug)]
pub(super) enum Said {
    Nothing,
    /// For the runtime, which may ask the model.
    Message {
        input: Box<Input>,
        asks_model: bool,
    },
    Help,
    Quit,
}

impl Said {
    /// What a text means. What looks like a command is one, or an error: a slip of the fingers is
    /// nothing to ask a model. `//x` says `/x`, whatever that would do.
    pub(super) fn of(text: &str, place: Place) -> Result<Self> {
        let line = text.trim();
        if line.is_empty() {
            return Ok(Self::Nothing);
        }
        let message = |asks_model| Self::Message { input: Box::new(text.into()), asks_model };
        let Some((word, rest)) = command(line) else {
            return Ok(match line.strip_prefix('/') {
                Some(said) if command(said).is_some() => {
                    Self::Message { input: Box::new(Input::literal(said)), asks_model: true }
                }
                _ => message(true),
            });
        };
        let usage = COMMANDS.iter().chain(&HERE).map(|(usage, _)| *usage);
        let usage = usage.chain([EXIT]).find(|usage| usage.split(' ').next() == Some(word));
        match usage {
            // A text of several lines was hardly typed as a command.
            None if line.contains('\n') => Ok(message(true)),
            None => Err(unknown(word, place)),
            Some(usage) if !usage.contains(' ') && !rest.is_empty() => {
                Err(Error::new(ErrorKind::InvalidInput, format!("{word} takes nothing after it"))
                    .hint(format!("say {word} alone, or /{word} ... to say it to the model")))
            }
            Some(usage) => match (usage, place) {
                ("/help", Place::Terminal) => Ok(Self::Help),
                ("/quit" | EXIT, Place::Terminal) => Ok(Self::Quit),
                ("/help" | "/quit" | EXIT, Place::Script) => {
                    Err(Error::new(ErrorKind::InvalidInput, format!("{word} is for the terminal"))
                        .hint("`ctx chat` without --prompt is a conversation there"))
                }
                _ => Ok(message(matches!(word, "/new" | "/reset") && !rest.is_empty())),
            },
        }
    }
}

/// A command's word and what follows it, where a text begins like one: `/usr/bin` does not.
fn command(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = word.strip_prefix('/')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_name.then_some((word, rest.trim()))
}

fn unknown(word: &str, place: Place) -> Error {
    let shown = shortened(word, WORD_CHARS);
    let list = match place {
        Place::Terminal => "/help lists the commands".to_owned(),
        Place::Script => {
            let words = COMMANDS.iter().filter_map(|(usage, _)| usage.split(' ').next());
            format!("the commands are {}", words.collect::<Vec<_>>().join(", "))
        }
    };
    Error::new(ErrorKind::InvalidInput, format!("there is no command {shown}"))
        .hint(format!("{list}; /{shown} ... says it to the model"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, place: Place) -> String {
        match Said::of(text, place) {
            Ok(Said::Nothing) => "nothing".to_owned(),
            Ok(Said::Help) => "help".to_owned(),
            Ok(Said::Quit) => "quit".to_owned(),
            Ok(Said::Message { input, asks_model }) => {
                format!("{} {asks_model}", input.message().plain_text())
            }
            Err(error) => format!("{error}; {}", error.hint_text().unwrap_or_default()),
        }
    }

    #[test]
    fn what_looks_like_a_command_is_one_or_an_error() {
        for (text, meant) in [
            (" ", "nothing"),
            ("hello", "hello true"),
            ("/usr/bin is full", "/usr/bin is full true"),
            ("/", "/ true"),
            ("// so", "// so true"),
            ("/foo\nbar", "/foo\nbar true"),
            ("//foo bar", "/foo bar true"),
            ("//compact", "/compact true"),
            ("/help", "help"),
            (" /quit ", "quit"),
            ("/exit", "quit"),
            ("/status", "/status false"),
            ("/compact the tests", "/compact the tests false"),
            ("/new", "/new false"),
            ("/new hello", "/new hello true"),
        ] {
            assert_eq!(told(text, Place::Terminal), meant, "{text:?}");
        }
        for text in ["/foo", "/Help", "/st", "/foo bar"] {
            let word = text.split(' ').next().unwrap();
            let meant = format!(
                "there is no command {word}; /help lists the commands; /{word} ... says it to the \
                 model"
            );
            assert_eq!(told(text, Place::Terminal), meant);
            let at_once = told(text, Place::Script);
            assert!(at_once.contains("the commands are /compact, /context,"), "{at_once}");
        }
        for text in ["/undo now", "/quit now", "/status x"] {
            assert!(told(text, Place::Terminal).contains("takes nothing after it"), "{text}");
        }
        for text in ["/help", "/quit", "/exit"] {
            assert!(told(text, Place::Script).contains("is for the terminal"), "{text}");
        }
    }
}
