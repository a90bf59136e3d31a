//! Parses a line: a message for the model, or a command.

use ctx_core::{Error, ErrorKind, Result};
use ctx_runtime::{COMMANDS, Input};
use ctx_terminal::format::shortened;

/// Commands of the terminal, not of the runtime.
pub(super) const TERMINAL_COMMANDS: [(&str, &str); 2] = [
    ("/help", "list the commands (only at a terminal, not with --prompt)"),
    ("/quit", "end the conversation (only at a terminal); Ctrl-D does the same"),
];

/// An alias of `/quit`.
const EXIT: &str = "/exit";

/// Maximum length of a quoted unknown command.
const WORD_CHARS: usize = 40;

/// Where the text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Terminal,
    Script,
}

/// The parsed text.
#[derive(Debug)]
pub(super) enum ParsedLine {
    Nothing,
    /// For the runtime, which may call the model.
    Message {
        input: Box<Input>,
        asks_model: bool,
    },
    Help,
    Quit,
}

impl ParsedLine {
    /// Parses a text. A text that looks like a command is a command or an error: a typo must not
    /// reach the model. `//x` sends the text `/x` to the model.
    pub(super) fn of(text: &str, mode: Mode) -> Result<Self> {
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
        let usage = COMMANDS.iter().chain(&TERMINAL_COMMANDS).map(|(usage, _)| *usage);
        let usage = usage.chain([EXIT]).find(|usage| usage.split(' ').next() == Some(word));
        match usage {
            // A text of several lines is not a mistyped command.
            None if line.contains('\n') => Ok(message(true)),
            None => Err(unknown(word, mode)),
            Some(usage) if !usage.contains(' ') && !rest.is_empty() => {
                Err(Error::new(ErrorKind::InvalidInput, format!("{word} takes no argument"))
                    .hint(format!("use {word} alone, or /{word} ... to send it to the model")))
            }
            Some(usage) => match (usage, mode) {
                ("/help", Mode::Terminal) => Ok(Self::Help),
                ("/quit" | EXIT, Mode::Terminal) => Ok(Self::Quit),
                ("/help" | "/quit" | EXIT, Mode::Script) => Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("{word} works only at a terminal"),
                )
                .hint("run `ctx chat` without --prompt")),
                _ => Ok(message(matches!(word, "/new" | "/reset") && !rest.is_empty())),
            },
        }
    }
}

/// Returns the word and the argument of a text that begins like a command; `/usr/bin` does not.
fn command(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = word.strip_prefix('/')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_name.then_some((word, rest.trim()))
}

fn unknown(word: &str, mode: Mode) -> Error {
    let shown = shortened(word, WORD_CHARS);
    let list = match mode {
        Mode::Terminal => "/help lists the commands".to_owned(),
        Mode::Script => {
            let words = COMMANDS.iter().filter_map(|(usage, _)| usage.split(' ').next());
            format!("the commands are {}", words.collect::<Vec<_>>().join(", "))
        }
    };
    Error::new(ErrorKind::InvalidInput, format!("unknown command {shown}"))
        .hint(format!("{list}; /{shown} ... sends it to the model"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, mode: Mode) -> String {
        match ParsedLine::of(text, mode) {
            Ok(ParsedLine::Nothing) => "nothing".to_owned(),
            Ok(ParsedLine::Help) => "help".to_owned(),
            Ok(ParsedLine::Quit) => "quit".to_owned(),
            Ok(ParsedLine::Message { input, asks_model }) => {
                format!("{} {asks_model}", input.message().plain_text())
            }
            Err(error) => format!("{error}; {}", error.hint_text().unwrap_or_default()),
        }
    }

    #[test]
    fn text_like_a_command_is_a_command_or_an_error() {
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
            assert_eq!(parsed(text, Mode::Terminal), meant, "{text:?}");
        }
        for text in ["/foo", "/Help", "/st", "/foo bar"] {
            let word = text.split(' ').next().unwrap();
            let meant = format!(
                "unknown command {word}; /help lists the commands; /{word} ... sends it to the \
                 model"
            );
            assert_eq!(parsed(text, Mode::Terminal), meant);
            let at_once = parsed(text, Mode::Script);
            assert!(at_once.contains("the commands are /compact, /context,"), "{at_once}");
        }
        for text in ["/undo now", "/quit now", "/status x"] {
            assert!(parsed(text, Mode::Terminal).contains("takes no argument"), "{text}");
        }
        for text in ["/help", "/quit", "/exit"] {
            assert!(parsed(text, Mode::Script).contains("works only at a terminal"), "{text}");
        }
    }
}
