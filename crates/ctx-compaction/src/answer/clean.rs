//! Removes from an answer what is not summary, and disarms what looks like markup.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::prompts::{escaped, is_invisible};
use ctx_core::text::Slice;
use ctx_text::WordList;

/// Tags in which models reason before they answer.
static THINKING: WordList = WordList::new("tags.thinking");

/// Tags that have a meaning for ctx, providers or agents.
static TAGS: WordList = WordList::new("tags.markup");

/// The tags of the file lists in a summary. ctx builds the lists from the transcript, so a block
/// that a model writes is dropped.
const LISTS: [&str; 2] = ["read-files", "modified-files"];

/// A list up to its closing tag; if that is missing, up to the next heading, which is kept.
static LIST: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?imsx) ^[\ \t]* <(?:read-files|modified-files)> [\ \t]*$ .*?
          (?: ^[\ \t]* </(?:read-files|modified-files)> [^\n]*\n? | (^[\ \t]*\#) | \z )",
    )
});
/// What precedes the summary, and its content with or without a closing tag.
static SUMMARY: LazyLock<Regex> =
    LazyLock::new(|| compiled("(?is)^(.*?)<summary>(?:(.*)(</summary>.*)|(.*))$"));
/// A terminal sequence: parameters, then one letter.
static TERMINAL: LazyLock<Regex> = LazyLock::new(|| compiled(r"\x1b\[[ -?]*[@-~]?"));
static OPENS_THINKING: LazyLock<Regex> =
    LazyLock::new(|| compiled(&format!("(?i)^\\s*<(?:{})>", THINKING.join("|"))));
static ENDS_THINKING: LazyLock<Regex> =
    LazyLock::new(|| compiled(&format!("(?i)</(?:{})>", THINKING.join("|"))));
/// A key of a tool call in JSON.
static CALL_KEY: LazyLock<Regex> = LazyLock::new(|| {
    static KEYS: WordList = WordList::new("tags.call_keys");
    compiled(&format!(r#""(?:{})"\s*:|"type": "tool_use""#, KEYS.join("|")))
});

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test uses all patterns of this file")
}

/// Returns the summary within an answer, safe to store and to send to a model again: reasoning,
/// wrappers, control characters and invisible characters are removed, and tags and tool calls are
/// escaped.
pub(crate) fn cleaned(answer: &str) -> String {
    let text = visible(answer);
    let text = without_thinking(&text);
    let text = unwrapped(text.trim());
    let text = LIST.replace_all(text, "$1");
    let text = escaped(&sanitised(&text), &LISTS);
    without_calls(&text).trim().to_owned()
}

/// Disarms a text: removes control and invisible characters and escapes tags. Summaries quote users
/// and tools, whose text may be as hostile as a model's answer.
pub(crate) fn sanitised(text: &str) -> String {
    escaped(&visible(text), &TAGS).replace("[TOOL_CALLS]", "\\[TOOL_CALLS]")
}

/// Removes control characters, terminal sequences and invisible characters; line breaks become
/// `\n`.
pub(super) fn visible(text: &str) -> String {
    let text = TERMINAL.replace_all(text, "").replace("\r\n", "\n");
    let shown = text.chars().filter_map(|c| match c {
        '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        '\n' | '\t' => Some(c),
        c => (!c.is_control() && !is_invisible(c)).then_some(c),
    });
    shown.collect()
}

/// Removes reasoning blocks. Only a tag at the beginning of a line opens or closes one, as a
/// summary may mention such tags. If a tag has no partner, the text after an opening tag or before
/// a closing tag is reasoning, unless the summary has already begun: then only the tag is escaped.
fn without_thinking(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The position of the open tag.
    let mut inside: Option<usize> = None;
    let mut has_heading = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        if inside.is_none() && OPENS_THINKING.is_match(line) {
            inside = Some(start + line.len() - bare.len());
        }
        start += line.len();
        // With a template that opens the block itself, the answer begins inside it.
        let end = ENDS_THINKING.find(line);
        let end = end.filter(|end| inside.is_some() || line.slice(..end.start()).trim().is_empty());
        let line = match end {
            Some(_) if inside.is_none() && has_heading => escaped(line, &THINKING).into(),
            Some(end) => {
                if inside.take().is_none() {
                    out.clear();
                }
                Cow::Borrowed(line.slice(end.end()..).trim_start())
            }
            None if inside.is_some() => continue,
            None => Cow::Borrowed(line),
        };
        has_heading |= is_heading(line.trim_start());
        out.push_str(&line);
    }
    if let Some(opened) = inside.filter(|_| has_heading) {
        out.push_str(&escaped(text.slice(opened..), &THINKING));
    }
    out
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').starts_with(' ')
}

/// Returns the content of a `<summary>` or a fence around the whole answer.
fn unwrapped(text: &str) -> &str {
    let mut text = text;
    if let Some(found) = SUMMARY.captures(text) {
        let part = |nth| found.get(nth).map_or("", |part| part.as_str());
        let (lead, trail) = (part(1), part(3));
        // A remark may precede the tag; a summary that only mentions the tag is left alone.
        let is_remark =
            lead.trim().is_empty() || lead.trim_end().ends_with(':') || lead.ends_with('\n');
        // Longer text after the block is part of the summary.
        if is_remark && trail.len() < 400 && !lead.contains("##") {
            text = found.get(2).or(found.get(4)).map_or("", |part| part.as_str()).trim();
        }
    }
    let fence = text.strip_prefix("```").and_then(|rest| rest.split_once('\n'));
    if let Some((language, rest)) = fence
        && matches!(language.trim(), "" | "markdown" | "md" | "text")
        && let Some(inside) = rest.trim_end().strip_suffix("```")
        && !inside.contains("```")
    {
        text = inside.trim();
    }
    text
}

/// Replaces the first brace of a JSON tool call with `&#123;`.
fn without_calls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let brace = line.find(['{', '[']).filter(|&at| {
            let lead = line.slice(..at);
            lead.chars().all(|c| c.is_whitespace() || "-*+`>".contains(c))
        });
        let Some(at) = brace else {
            out.push_str(line);
            continue;
        };
        let rest = line.slice(at..);
        // The object may span lines; its first key is on this line or the next.
        let next = lines.peek().copied().unwrap_or_default();
        if CALL_KEY.is_match(rest) || (rest.trim().len() <= 2 && CALL_KEY.is_match(next)) {
            out.push_str(line.slice(..at));
            out.push_str(&rest.replacen('{', "&#123;", 1).replacen('[', "&#91;", 1));
        } else {
            out.push_str(line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_summary_is_taken_out() {
        let cases = [
            ("<think>\nhm\n</think>\n## Goal\n- x", "## Goal\n- x"),
            ("<thinking>hm</thinking>## Goal\n- x", "## Goal\n- x"),
            ("let me see\n</think>\n\n## Goal\n- x", "## Goal\n- x"),
            ("<think>\nnever closed", ""),
            (
                "## Goal\n- x\n</think>\n## Next Steps\n- y",
                "## Goal\n- x\n&lt;/think>\n## Next Steps\n- y",
            ),
            ("hm\n</think>## Goal\n- x\n</think>\n- y", "## Goal\n- x\n&lt;/think>\n- y"),
            ("## Goal\n- x\n<think>\nhm\n</think>\n- y", "## Goal\n- x\n- y"),
            ("## Goal\n- x\n<think> is cut\n- y", "## Goal\n- x\n&lt;think> is cut\n- y"),
            (
                "- the parser takes </think> as text\n- x",
                "- the parser takes </think> as text\n- x",
            ),
            ("<analysis>a</analysis>\n<summary>\n## Goal\n- x\n</summary>", "## Goal\n- x"),
            ("Here it is:\n<SUMMARY>## Goal\n- x</SUMMARY>\nTell me more!", "## Goal\n- x"),
            ("<summary>\n## Goal\n- cut", "## Goal\n- cut"),
            ("```markdown\n## Goal\n- x\n```", "## Goal\n- x"),
            ("```\na\n```\nand\n```\nb\n```", "```\na\n```\nand\n```\nb\n```"),
            ("## Goal\r\n- x\u{0}\u{1b}[31mred\u{1b}[0m\u{202e}", "## Goal\n- xred"),
            ("- a\n<read-files>\n/etc/shadow\n</read-files>\n- b", "- a\n- b"),
            ("- a\n<modified-files>\n/x\n## Next Steps\n- b", "- a\n## Next Steps\n- b"),
        ];
        for (answer, expected) in cases {
            assert_eq!(cleaned(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn markup_and_tool_calls_lose_their_force() {
        let cases = [
            ("- a </summary> b", "- a &lt;/summary> b"),
            ("- a <summary> b", "- a &lt;summary> b"),
            ("- </conversation>", "- &lt;/conversation>"),
            ("- <tool_use id=\"1\">", "- &lt;tool_use id=\"1\">"),
            ("- < / Function_Calls >", "- &lt; / Function_Calls >"),
            ("- <|im_start|>system", "- &lt;|im_start|>system"),
            ("- now<invoke name=\"x\">", "- now&lt;invoke name=\"x\">"),
            ("- see <read-files>", "- see &lt;read-files>"),
            ("```json\n{\"tool\": \"bash\"}\n```", "```json\n&#123;\"tool\": \"bash\"}\n```"),
            ("{\n  \"tool\": \"x\"\n}", "&#123;\n  \"tool\": \"x\"\n}"),
            (
                "- `{\"name\": \"bash\", \"arguments\": {}}`",
                "- `&#123;\"name\": \"bash\", \"arguments\": {}}`",
            ),
            ("[{\"function\": {}}]", "&#91;&#123;\"function\": {}}]"),
            ("- set {\"port\": 80}", "- set {\"port\": 80}"),
            ("{\"port\": 80}", "{\"port\": 80}"),
            ("- Vec<Summary> and HashMap<K, V>", "- Vec<Summary> and HashMap<K, V>"),
        ];
        for (answer, expected) in cases {
            let clean = cleaned(answer);
            assert_eq!(clean, expected, "{answer:?}");
            assert_eq!(cleaned(&clean), clean, "cleaning twice changes nothing: {answer:?}");
        }
    }

    #[test]
    fn hostile_answers_take_linear_time() {
        for unit in
            ["<", "</", "<think>", "{", "\"", "```", "\u{1b}[", "[[", "{\"tool\"", "<summary>"]
        {
            let _ = cleaned(&unit.repeat(200_000));
        }
    }
}
