//! The rules of the built-in model.

use ctx_core::{Block, ChatRequest, Message, RawJson, Role, ToolCall};
use ctx_terminal::format::{counted, shortened};
use serde_json::{Value, json};

/// The runtime's tool for a memory flush.
const APPEND: &str = "append_memory";

/// Number of points in a long text.
const POINTS: usize = 40;

/// Maximum length of a quote.
const QUOTED: usize = 200;

const HELP: &str = "I am a model of a few rules, so that you can see what happens around a model. Say \
    `read FILE`, `run COMMAND`, `write FILE: TEXT`, `a long text about THING`, or `what did I say about \
    THING?`. Long texts fill the window; the bar shows it. Then old history becomes a summary, and \
    what I can no longer see comes back when you ask for it.";

/// Answers from the text of the request alone.
pub(super) fn answer(request: &ChatRequest) -> Vec<Block> {
    let Some(newest) = request.messages.last() else { return vec![Block::text(HELP)] };
    if request.tools.iter().any(|tool| tool.name == APPEND) {
        return flush(request, newest);
    }
    let turn = request.messages.iter().filter(|message| message.role == Role::User).count();
    if let Some(result) = newest.tool_results().next() {
        return vec![Block::text(of_result(&result.plain_text(), result.is_error))];
    }
    let said = newest.plain_text();
    let said = said.trim();
    if let Some((name, arguments)) = tool_for(said) {
        return match request.tools.iter().any(|tool| tool.name == name) {
            true => vec![call(request, name, &arguments)],
            false => vec![Block::text(format!(
                "I would use the tool {name}, but I was not given it: see --tools."
            ))],
        };
    }
    let text = if let Some(about) = after(said, &["a long text about ", "tell me about "]) {
        long_text(about, turn)
    } else if let Some(about) = after(said, &["what did i say about ", "what do you know about "]) {
        seen(request, about)
    } else if said.len() > 600 {
        format!(
            "That was long: {}. I have read it.",
            counted(said.split_whitespace().count(), "word")
        )
    } else if after(said, &["hello", "hi", "help", "who are you"]).is_some() {
        HELP.to_owned()
    } else {
        format!("Noted: {}", shortened(said, QUOTED))
    };
    vec![Block::text(text)]
}

/// Returns the text after one of these prefixes, ignoring case.
fn after<'a>(said: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let rest = beginnings.iter().find_map(|beginning| {
        let head = said.get(..beginning.len())?;
        head.eq_ignore_ascii_case(beginning).then(|| &said[beginning.len()..])
    });
    rest.map(|rest| rest.trim().trim_end_matches(['?', '.', '!']))
}

/// Returns the tool that a message requests.
fn tool_for(said: &str) -> Option<(&'static str, Value)> {
    if let Some(command) = said.strip_prefix("run ") {
        return Some(("bash", json!({ "command": command.trim() })));
    }
    if let Some(path) = after(said, &["read "]) {
        return Some(("read", json!({ "path": path })));
    }
    let (path, content) = said.strip_prefix("write ")?.split_once(':')?;
    let content = format!("{}\n", content.trim());
    Some(("write", json!({ "path": path.trim(), "content": content })))
}

fn call(request: &ChatRequest, name: &str, arguments: &Value) -> Block {
    // Ids must be unique in a session, and only the request is known here.
    let calls = request.messages.iter().flat_map(|message| message.tool_calls()).count();
    let newest = request.messages.last().and_then(|message| message.meta.timestamp);
    let at = newest.map_or(0, |at| at.0);
    Block::ToolCall(ToolCall::new(
        format!("demo_{at}_{calls}"),
        name,
        RawJson::from_text(arguments.to_string()),
    ))
}

fn of_result(text: &str, is_error: bool) -> String {
    let first = shortened(text.lines().find(|line| !line.trim().is_empty()).unwrap_or(""), QUOTED);
    match is_error {
        true => format!("That failed: {}", shortened(text.trim(), QUOTED)),
        false => format!("That gave {}, the first: {first}", counted(text.lines().count(), "line")),
    }
}

/// Stores user messages that begin with `I`, `my`, `we` or `our`. After that, answers `NO_REPLY`.
fn flush(request: &ChatRequest, newest: &Message) -> Vec<Block> {
    if newest.tool_results().next().is_some() {
        return vec![Block::text("NO_REPLY")];
    }
    let said = request.messages.iter().filter(|message| message.role == Role::User);
    let said = said.map(|message| message.plain_text());
    let is_noted = |text: &String| {
        let is_personal = ["i ", "my ", "we ", "our "].iter().any(|word| starts(text, word));
        is_personal && text.len() < 400
    };
    let lines: Vec<_> = said.filter(is_noted).map(|text| format!("- {}", text.trim())).collect();
    match lines.is_empty() {
        true => vec![Block::text("NO_REPLY")],
        false => vec![call(request, APPEND, &json!({ "text": lines.join("\n") }))],
    }
}

fn starts(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// Answers with the newest line of the request that contains the subject, except questions and the
/// model's own answers.
fn seen(request: &ChatRequest, about: &str) -> String {
    let needle = about.to_lowercase();
    let needle = needle.trim_start_matches("my ").trim_start_matches("the ");
    let texts = request.messages.iter().rev().skip(1).map(|message| message.plain_text());
    for text in texts {
        let found = text.lines().find(|line| {
            let line = line.to_lowercase();
            line.contains(needle) && !line.trim_end().ends_with('?') && !is_own(&line)
        });
        if let Some(line) = found {
            // Recalled lines begin with their date.
            let dated = line.trim().strip_prefix('[').and_then(|line| line.split_once("] "));
            let line = dated.map_or(line.trim(), |(_, line)| line);
            return format!("I can see this: {}", shortened(line, QUOTED));
        }
    }
    format!("Nothing that I can see says anything about {}.", shortened(about, QUOTED))
}

/// Whether a line is one of the model's own answers.
fn is_own(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| !c.is_alphabetic());
    ["noted: ", "nothing that i can see", "i can see this"].iter().any(|own| line.starts_with(own))
}

/// Returns a text to fill a window, different in each turn.
fn long_text(about: &str, turn: usize) -> String {
    const SAY: [&str; 5] = [
        "is seen best from where it began, as what came later hides it",
        "has a part that everybody knows, and one that is only found by looking twice",
        "was measured more than once, and the figures did not agree",
        "changes slowly until it changes at once",
        "needs a name of its own before one can speak of it",
    ];
    let about = shortened(about, 80);
    let mut text = format!("A long text about {about}.");
    for point in 1..=POINTS {
        let (say, figure) = (SAY[(point + turn) % SAY.len()], 100 + point * 7 + turn * 13);
        text.push_str(&format!("\n{point}. {about} {say}; count {figure} here."));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::ToolSpec;

    use super::*;

    fn request(said: &[(Role, &str)], tools: &[&str]) -> ChatRequest {
        let messages = said.iter().map(|(role, text)| Arc::new(Message::text(role.clone(), *text)));
        let tools = tools.iter().map(|name| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: RawJson::from_text("{}"),
        });
        ChatRequest {
            messages: messages.collect(),
            tools: tools.collect(),
            ..ChatRequest::default()
        }
    }

    fn text_of(said: &[(Role, &str)], tools: &[&str]) -> String {
        match answer(&request(said, tools)).as_slice() {
            [Block::Text { text }] => text.clone(),
            [Block::ToolCall(call)] => format!("{} {}", call.name, call.arguments.as_str()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tools_are_used_if_they_are_offered() {
        let of = |said: &str, tools: &[&str]| text_of(&[(Role::User, said)], tools);
        assert_eq!(of("read a b.txt", &["read"]), r#"read {"path":"a b.txt"}"#);
        assert_eq!(of("run ls -l", &["bash"]), r#"bash {"command":"ls -l"}"#);
        let write = of("write n/x.md: two words", &["write"]);
        assert_eq!(write, r#"write {"path":"n/x.md","content":"two words\n"}"#);
        assert!(of("run ls", &["read"]).contains("--tools"));
        assert!(of("Grüß", &[]).starts_with("Noted: "));
        assert!(of("a long text about tea", &[]).len() > 2_000);
    }

    #[test]
    fn it_knows_only_the_request() {
        let asks = (Role::User, "What did I say about my cat?");
        let knows =
            [(Role::User, "my cat is called Ada"), (Role::Assistant, "Noted: x"), asks.clone()];
        assert_eq!(text_of(&knows, &[]), "I can see this: my cat is called Ada");
        assert!(text_of(&[asks], &[]).starts_with("Nothing that I can see"));
    }

    #[test]
    fn a_flush_stores_statements_then_answers_no_reply() {
        let told = [(Role::User, "I live in Bern"), (Role::User, "run ls"), (Role::User, "flush")];
        assert_eq!(text_of(&told, &[APPEND]), r#"append_memory {"text":"- I live in Bern"}"#);
        assert_eq!(text_of(&[(Role::User, "flush")], &[APPEND]), "NO_REPLY");
    }
}
