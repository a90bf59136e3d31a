//! Commands that were run.

use std::sync::LazyLock;

use ctx_core::ToolCall;
use ctx_core::text::Slice;
use ctx_text::{WordList, clip_to_width};
use regex::Regex;
use serde_json::Value;

/// Words of commands with an external effect.
static LASTING: WordList = WordList::new("command.lasting");

/// What begins the part of a command line that only filters its output.
static CUTS: WordList = WordList::new("command.cuts");

/// Parts of the names of tools that run a command line.
static SHELLS: WordList = WordList::new("tools.name_of_shell");

/// Compiles a pattern of this crate.
pub(crate) fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test uses all patterns of this crate")
}

/// Returns the command line of a call that runs one.
pub fn command_line(call: &ToolCall) -> Option<String> {
    let name = call.name.to_lowercase();
    if !SHELLS.is_in(&name) || call.arguments.as_str().len() > 200_000 {
        return None;
    }
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
    ["command", "cmd", "script"].iter().find_map(|key| match arguments.get(*key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            // `["bash", "-lc", "make"]`
            let inner = words.iter().position(|w| *w == "-lc" || *w == "-c").map(|at| at + 1);
            Some(
                inner
                    .and_then(|at| words.get(at))
                    .map_or_else(|| words.join(" "), |w| (*w).to_owned()),
            )
        }
        _ => None,
    })
}

/// Formats a command as inline code, if possible.
pub fn code(essence: &str) -> String {
    if essence.contains('`') { essence.to_owned() } else { format!("`{essence}`") }
}

/// Returns the relevant part of a command line, on one line: without a leading `cd` and a trailing
/// output filter.
pub fn essence(line: &str) -> String {
    let leads = |line: &&str| line.is_empty() || line.starts_with('#') || line.ends_with("&&");
    let mut lines = line.lines().map(str::trim);
    let mut first = lines.next().unwrap_or_default();
    while first.starts_with("cd ") && !first.contains("&& ") || leads(&first) {
        let Some(next) = lines.next() else { break };
        first = next;
    }
    let mut line = first.trim_end_matches("&&").trim();
    while let Some((folder, rest)) = line.split_once("&&").filter(|_| line.starts_with("cd ")) {
        if folder.len() > 300 || rest.trim().is_empty() {
            break;
        }
        line = rest.trim();
    }
    let end = CUTS.iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    let line = line.slice(..end).trim();
    // It must be findable in the transcript, so the result is one contiguous part of the line.
    clip_to_width(line, 140).trim_end_matches(['…', ' ']).to_owned()
}

/// Whether a command line has an external effect: a push, a pull request, a release, a migration.
pub fn has_effect(line: &str) -> bool {
    !line.contains("git commit") && LASTING.is_in(line)
}

/// Returns the line `[main 1a2b3c4] subject` in the output of `git commit`.
pub fn commit_line(output: &str) -> Option<&str> {
    output.lines().map(str::trim).take(200).find(|line| hash_of(line).is_some())
}

fn hash_of(line: &str) -> Option<&str> {
    let (head, subject) = line.strip_prefix('[')?.split_once("] ")?;
    let hash = head.rsplit(' ').next()?;
    let is_hash = (7..=40).contains(&hash.len()) && hash.chars().all(|c| c.is_ascii_hexdigit());
    (is_hash && !subject.is_empty() && head.len() < 200).then_some(hash)
}

/// Returns the first URL of an output.
pub fn url(output: &str) -> Option<&str> {
    static URL: LazyLock<Regex> = LazyLock::new(|| compiled(r#"https?://[^\s"'<>)`]*"#));
    URL.find(output).map(|url| url.as_str()).filter(|url| url.len() < 300)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_essence_of_a_command_is_its_own_words() {
        for (line, expected, has) in [
            ("cd /a/b && npm run check 2>&1 | tail -20", "npm run check", false),
            (
                "cd /a && git add -A && git commit -m \"x\"",
                "git add -A && git commit -m \"x\"",
                false,
            ),
            ("git push origin main", "git push origin main", true),
            ("cd /a", "cd /a", false),
            ("cd /a\n# all\nmake test\nls", "make test", false),
            ("gh pr create --title \"t\" --body \"$(cat", "gh pr create --title \"t\"", true),
            ("cat <<EOF\nbig\nEOF", "cat", false),
        ] {
            assert_eq!(essence(line), expected);
            assert_eq!(has_effect(line), has, "{line}");
        }
    }

    #[test]
    fn what_a_command_printed_says_what_it_made() {
        assert_eq!(commit_line("[main 1a2b3c4] fix: x\n 1 file"), Some("[main 1a2b3c4] fix: x"));
        assert_eq!(commit_line("[note] nothing"), None);
        assert_eq!(url("see https://x.y/pull/3\n"), Some("https://x.y/pull/3"));
    }
}
