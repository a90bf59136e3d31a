//! Removes from an answer what is not summary, and disarms what looks like markup.

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

/// Returns the summary within an answer, safe to store and to send to a model again: reasoning,
/// wrappers, control characters and invisible characters are removed, and tags and tool calls are
/// escaped.
pub(crate) fn cleaned(answer: &str) -> String {
    let text = visible(answer);
    let text = without_thinking(&text);
    let text = unwrapped(text.trim());
    let text = without_lists(text);
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
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {
                let _ = chars.next_if_eq(&'\n');
                out.push('\n');
            }
            // A terminal sequence: parameters, then one letter.
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
                let _ = chars.next_if(|c| matches!(c, '@'..='~'));
            }
            '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_invisible(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Removes reasoning blocks. Only a tag at the beginning of a line opens or closes one, as a
/// summary may mention such tags. If a tag has no partner, the text after an opening tag or before
/// a closing tag is reasoning, unless the summary has already begun: then only the tag is escaped.
fn without_thinking(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside: Option<Opened> = None;
    let mut has_heading = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let here = start;
        start += line.len();
        let bare = line.trim_start();
        if inside.is_none() {
            let opened = THINKING.iter().copied().find(|tag| starts_with_tag(bare, "<", tag));
            inside = opened.map(|tag| Opened { tag, at: here + line.len() - bare.len() });
        }
        if let Some(opened) = &inside {
            if let Some(end) = end_of(line, opened.tag) {
                inside = None;
                let rest = line.slice(end..).trim_start();
                has_heading |= is_heading(rest);
                out.push_str(rest);
            }
            continue;
        }
        // With a template that opens the block itself, the answer begins inside it.
        let closed = THINKING.iter().copied().find(|tag| starts_with_tag(bare, "</", tag));
        match closed.and_then(|tag| end_of(line, tag)) {
            Some(_) if has_heading => out.push_str(&escaped(line, &THINKING)),
            Some(end) => {
                let rest = line.slice(end..).trim_start();
                has_heading |= is_heading(rest);
                out.clear();
                out.push_str(rest);
            }
            None => {
                has_heading |= is_heading(bare);
                out.push_str(line);
            }
        }
    }
    if let Some(opened) = inside.filter(|_| has_heading) {
        out.push_str(&escaped(text.slice(opened.at..), &THINKING));
    }
    out
}

/// An open tag and its position.
struct Opened {
    tag: &'static str,
    at: usize,
}

/// Finds the rest of a line after the closing tag.
fn end_of(line: &str, tag: &str) -> Option<usize> {
    let close = format!("</{tag}>");
    find_ignoring_case(line, &close).map(|at| at + close.len())
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').starts_with(' ')
}

fn starts_with_tag(line: &str, open: &str, tag: &str) -> bool {
    let Some(rest) = line.strip_prefix(open) else { return false };
    rest.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag))
        && rest.get(tag.len()..).is_some_and(|rest| rest.starts_with('>'))
}

fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.match_indices('<')
        .map(|(at, _)| at)
        .find(|&at| text.get(at..at + needle.len()).is_some_and(|t| t.eq_ignore_ascii_case(needle)))
}

/// Returns the content of a `<summary>` or a fence around the whole answer.
fn unwrapped(text: &str) -> &str {
    let mut text = text;
    if let Some(start) = find_ignoring_case(text, "<summary>") {
        let lead = text.slice(..start);
        let inside = text.slice(start + "<summary>".len()..);
        // A remark may precede the tag; a summary that only mentions the tag is left alone.
        if lead.trim().is_empty() || lead.trim_end().ends_with(':') || lead.ends_with('\n') {
            let end = inside.match_indices('<').map(|(at, _)| at).rfind(|&at| {
                let close = inside.get(at..at + "</summary>".len());
                close.is_some_and(|tag| tag.eq_ignore_ascii_case("</summary>"))
            });
            let (held, trail) = inside.split_at(end.unwrap_or(inside.len()));
            // Longer text after the block is part of the summary.
            if trail.len() < 400 && !lead.contains("##") {
                text = held.trim();
            }
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

/// Removes whole blocks of file lists.
fn without_lists(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        match inside {
            Some(tag) if starts_with_tag(bare, "</", tag) => inside = None,
            // The list was never closed: after a heading the summary continues.
            Some(_) if bare.starts_with('#') => {
                inside = None;
                out.push_str(line);
            }
            Some(_) => {}
            None => match LISTS.into_iter().find(|tag| starts_with_tag(bare, "<", tag)) {
                Some(tag) if bare.len() == tag.len() + 2 => inside = Some(tag),
                _ => out.push_str(line),
            },
        }
    }
    out
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
        if has_call_key(rest) || (rest.trim().len() <= 2 && has_call_key(next)) {
            out.push_str(line.slice(..at));
            out.push_str(&rest.replacen('{', "&#123;", 1).replacen('[', "&#91;", 1));
        } else {
            out.push_str(line);
        }
    }
    out
}

fn has_call_key(json: &str) -> bool {
    static KEYS: WordList = WordList::new("tags.call_keys");
    let quoted = |key: &&str| {
        json.match_indices('"').any(|(at, _)| {
            let rest = json.get(at + 1..).and_then(|rest| rest.strip_prefix(*key));
            rest.is_some_and(|rest| {
                rest.strip_prefix('"').is_some_and(|rest| rest.trim_start().starts_with(':'))
            })
        })
    };
    KEYS.iter().any(quoted) || json.contains("\"type\": \"tool_use\"")
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
