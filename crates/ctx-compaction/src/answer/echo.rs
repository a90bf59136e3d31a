//! Detects an answer that repeats the prompt instead of summarising it.

use std::collections::HashSet;

use crate::fnv1a::fnv1a;
use crate::prompts::is_role_marker;

/// Tags around the material of a prompt, as [`cleaned`](super::cleaned) leaves them.
const FENCES: [&str; 3] = ["conversation>", "previous-summary>", "partial-summary>"];

/// The number of prompt-only lines that make an answer an echo.
const MARKED: usize = 3;

/// The minimum number of lines copied verbatim that make an echo, if they are half of the answer.
const COPIED: usize = 8;

/// Shorter lines match by chance.
const LEAST_CHARS: usize = 24;

/// Whether a cleaned answer repeats its prompt: role markers of the conversation, its fences, the
/// task, or many of its lines.
pub(super) fn is_echo(text: &str, prompt: &str) -> bool {
    let task = prompt.rfind("\n</").and_then(|end| prompt.get(end..)).unwrap_or_default();
    let task = hashes(task.lines().filter(|line| !line.trim_start().starts_with('#')));
    // The conversation comes first; no text in it closes its fence.
    let said = prompt.strip_prefix("<conversation>\n");
    let said = said.and_then(|rest| rest.split_once("\n</conversation>")).map_or("", |all| all.0);
    let said = hashes(said.lines());
    let (mut lines, mut marked, mut copied) = (0usize, 0usize, 0usize);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let own = fnv1a(&[line.as_bytes()]);
        lines += 1;
        marked += usize::from(is_marked(line) || task.contains(&own));
        copied += usize::from(said.contains(&own));
    }
    // A conversation of one message has only one marker.
    marked >= MARKED || (marked > 0 && marked * 3 >= lines) || copied >= COPIED.max(lines / 2)
}

fn is_marked(line: &str) -> bool {
    let tag = line.strip_prefix("&lt;").map(|tag| tag.trim_start_matches('/'));
    let is_fence = |tag: &str| FENCES.iter().any(|fence| tag.starts_with(fence));
    tag.is_some_and(is_fence) || is_role_marker(line)
}

fn hashes<'a>(lines: impl Iterator<Item = &'a str>) -> HashSet<u64> {
    let long = lines.map(str::trim).filter(|line| line.len() >= LEAST_CHARS);
    long.map(|line| fnv1a(&[line.as_bytes()])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cleaned;
    use super::*;

    const PROMPT: &str = "<conversation>\n[e:1] [User]: fix the retry loop in src/http.rs\n\n\
        [e:2] [Assistant tool calls]: read(path=\"src/http.rs\")\n\n[e:3] [Tool result]: fn retry() \
        {\n    let attempts_so_far_a = 0;\n    let attempts_so_far_b = 0;\n    \
        let attempts_so_far_c = 0;\n    let attempts_so_far_d = 0;\n    \
        let attempts_so_far_e = 0;\n    let attempts_so_far_f = 0;\n    \
        let attempts_so_far_g = 0;\n    let attempts_so_far_h = 0;\n}\n</conversation>\n\n\
        Summarise the conversation above for another model.\n\
        - [What the user wants to be done in the end]\n\
        Say nothing that the conversation does not say.\n\nWrite at most 800 tokens.";

    fn echoes(answer: &str) -> bool {
        is_echo(&cleaned(answer), PROMPT)
    }

    #[test]
    fn a_prompt_that_comes_back_is_no_summary() {
        let said = PROMPT.split("</conversation>").next().unwrap_or_default();
        let code: Vec<&str> = PROMPT.lines().filter(|line| line.starts_with("    ")).collect();
        for answer in [
            PROMPT.to_owned(),
            said.to_owned(),
            format!("## Goal\n- Fix the retry loop\n\n{said}"),
            said.replace("[e:", "  [E:").replace("[User]:", "[ user ]:"),
            "[User]: fix the retry loop".to_owned(),
            PROMPT.split("</conversation>").nth(1).unwrap_or_default().to_owned(),
            "<partial-summary>\n- a\n</partial-summary>\n\n<partial-summary>\n- b".to_owned(),
            code.join("\n"),
        ] {
            assert!(echoes(&answer), "{answer}");
        }
    }

    #[test]
    fn a_summary_may_quote_what_was_said() {
        for answer in [
            "## Goal\n- [User]: fix the retry loop in src/http.rs [e:1]\n\n## Next Steps\n1. Test",
            "## Goal\n- Fix the retry loop [e:1]\n- [What the user wants to be done in the end]\n\
             ## Progress\n- Read src/http.rs [e:3]\n## Next Steps\n1. Test",
            "## Goal\n- Fix it [e:1]\n[User]: wants it soon\n## Next Steps\n1. Test it\n2. Ship it",
            "## Goal\n- Fix it [e:1]\n```\n    let attempts_so_far_a = 0;\n```\n",
        ] {
            assert!(!echoes(answer), "{answer}");
        }
    }

    #[test]
    fn hostile_answers_take_linear_time() {
        for unit in ["[User]: ", "[e:", "\n[e:1] ", "&lt;", "\n", "[ ", "\u{200d}["] {
            let text = unit.repeat(100_000);
            let _ = is_echo(&text, &text);
        }
    }
}
