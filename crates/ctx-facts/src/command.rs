//! Commands that were run: their purpose and their outcome.

use std::sync::LazyLock;

use ctx_core::ToolCall;
use ctx_core::text::Slice;
use ctx_text::{WordList, clip_to_width};
use regex::Regex;
use serde_json::Value;

use ctx_text::output::{root_cause, says_failed, totals};

static LASTING: WordList = WordList::new("command.lasting");

static CUTS: WordList = WordList::new("command.cuts");

/// Parts of the names of tools that run a command line.
static SHELLS: WordList = WordList::new("tools.name_of_shell");

/// Beginnings of commands that only look at the work.
static LOOKS: WordList = WordList::new("command.looks");
/// Words of commands that check the work.
static CHECK: LazyLock<Regex> = LazyLock::new(|| {
    let checks = WordList::new("command.checks").join("|");
    compiled(&format!(r"(?:^|[^[:alnum:]])(?:{checks})s?(?:[^[:alnum:]]|$)"))
});
static NOT_A_WORD: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#""[^"]*(?:"|$)|'[^']*(?:'|$)|\S*/\S*"#));

/// Compiles a pattern of this crate.
pub(crate) fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test uses all patterns of this crate")
}

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Tests, a build, a linter: its outcome is the state of the work.
    Check,
    /// An external effect: a push, a pull request, a release, a migration.
    Effect,
    /// Anything else.
    Other,
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

/// Returns the purpose of a command line with this [`essence`].
pub fn purpose(line: &str, essence: &str) -> Purpose {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if has(&["git commit"]) {
        return Purpose::Other;
    }
    if has(&LASTING) {
        return Purpose::Effect;
    }
    // Words in paths and quoted strings are not the command's.
    let is_check = CHECK.is_match(&NOT_A_WORD.replace_all(essence, " "));
    let reads = LOOKS.begins(essence);
    if !reads && is_check { Purpose::Check } else { Purpose::Other }
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

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Success, with the output line that says so, if any.
    Well(Option<String>),
    /// Failure, with the output line that gives the reason.
    Badly(String),
    /// Unknown.
    Unknown,
}

/// Returns the outcome of a command from its output and from its tool's status.
pub fn end(line: &str, output: &str, failed: bool) -> End {
    let sum = totals(output);
    if failed || sum.is_some_and(says_failed) {
        let why = root_cause(output).or_else(|| sum.map(str::to_owned));
        return why.map_or(End::Unknown, End::Badly);
    }
    match sum {
        Some(sum) => End::Well(Some(sum.to_owned())),
        // A pipe hides the status of the first command.
        None if line.contains('|') || line.contains(';') => match root_cause(output) {
            Some(_) => End::Unknown,
            None => End::Well(None),
        },
        None => End::Well(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_essence_of_a_command_is_its_own_words() {
        for (line, expected, why) in [
            ("cd /a/b && npm run check 2>&1 | tail -20", "npm run check", Purpose::Check),
            (
                "cd /a && git add -A && git commit -m \"x\"",
                "git add -A && git commit -m \"x\"",
                Purpose::Other,
            ),
            ("git push origin main", "git push origin main", Purpose::Effect),
            ("grep -rn test src", "grep -rn test src", Purpose::Other),
            ("cd /a", "cd /a", Purpose::Other),
            ("cd /a\n# all\nmake test\nls", "make test", Purpose::Check),
            ("go test ./...", "go test ./...", Purpose::Check),
            ("pwd && git -C /a/test-x status", "pwd && git -C /a/test-x status", Purpose::Other),
            (
                "gh pr create --title \"t\" --body \"$(cat",
                "gh pr create --title \"t\"",
                Purpose::Effect,
            ),
            ("cat <<EOF\nbig\nEOF", "cat", Purpose::Other),
        ] {
            assert_eq!(essence(line), expected);
            assert_eq!(purpose(line, &essence(line)), why, "{line}");
        }
    }

    #[test]
    fn what_a_command_printed_says_how_it_ended() {
        assert_eq!(commit_line("[main 1a2b3c4] fix: x\n 1 file"), Some("[main 1a2b3c4] fix: x"));
        assert_eq!(commit_line("[note] nothing"), None);
        assert_eq!(url("see https://x.y/pull/3\n"), Some("https://x.y/pull/3"));
        assert_eq!(
            end("npm test", "Tests: 1 failed, 2 passed", false),
            End::Badly("Tests: 1 failed, 2 passed".into())
        );
        assert_eq!(
            end("npm test", "Tests: 3 passed", false),
            End::Well(Some("Tests: 3 passed".into()))
        );
        assert_eq!(end("tsc | tail", "a.ts(1,1): error TS1: x", false), End::Unknown);
        assert_eq!(end("make", "", true), End::Unknown);
    }
}
