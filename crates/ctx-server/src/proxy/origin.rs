//! Where a conversation comes from: its client, and the folder in which the client works.

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use ctx_redact::Redactor;

use super::units::RequestUnit;

/// Maximum characters of a name or a path.
const MOST: usize = 256;

/// The text before the folder, in lower case. Agents tell it to the model: Claude Code, opencode and
/// pi (`Working directory: `), Gemini CLI and Qwen Code, Codex (`<cwd>`).
const MARKS: [&str; 3] = ["working directory: ", "working in the directory: ", "<cwd>"];

/// The number of messages that may contain the folder.
const FIRST_UNITS: usize = 3;

/// Returns the client's name in its `user-agent`, without the version: `claude-cli`, `OpenAI/Python`.
pub(super) fn client(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(USER_AGENT)?.to_str().ok()?.split_whitespace().next()?;
    let is_version = |part: &&str| part.trim_start_matches('v').starts_with(char::is_numeric);
    let name: Vec<&str> = text.split('/').take_while(|part| !is_version(part)).collect();
    let name: String = name.join("/").chars().take(MOST).collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the folder in the system prompt or in one of the first messages.
pub(super) fn project(system: Option<&str>, units: &[RequestUnit<'_>]) -> Option<String> {
    let first = || units.iter().take(FIRST_UNITS);
    system
        .and_then(folder)
        .or_else(|| first().find_map(|unit| folder(&unit.message().plain_text())))
}

fn folder(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let value = MARKS.iter().find_map(|mark| {
        let at = lower.find(mark)? + mark.len();
        text.get(at..)?.split(['\n', '<']).next()
    });
    let value: String = value?.trim().trim_matches('`').chars().take(MOST).collect();
    let is_path = value.starts_with(['/', '~']) || value.get(1..3) == Some(":\\");
    is_path.then(|| Redactor::builtin().redact(&value).text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_without_its_version() {
        for (text, name) in [
            ("claude-cli/2.0.14 (external, cli)", Some("claude-cli")),
            ("OpenAI/Python 1.99.1", Some("OpenAI/Python")),
            ("GeminiCLI/v0.8.1/gemini-2.5-pro (linux; x64)", Some("GeminiCLI")),
            ("node", Some("node")),
            ("1.0", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(USER_AGENT, text.parse().unwrap())]);
            assert_eq!(client(&headers).as_deref(), name, "{text}");
        }
        assert_eq!(client(&HeaderMap::new()), None);
    }

    #[test]
    fn a_folder_is_read_from_what_agents_tell_the_model() {
        for (text, path) in [
            ("<env>\nWorking directory: /home/me/a b\nIs git: yes", Some("/home/me/a b")),
            (" - Primary working directory: C:\\work\n", Some("C:\\work")),
            ("I'm currently working in the directory: `/w`\nHere is", Some("/w")),
            ("<environment_context>\n  <cwd>/w/é</cwd>\n", Some("/w/é")),
            ("the working directory: of the tool", None),
            ("nothing", None),
        ] {
            assert_eq!(folder(text).as_deref(), path, "{text}");
        }
    }
}
