//! What each provider accepts, told apart from how this crate brings it about.

use std::collections::HashSet;

use ctx_core::{Message, RawJson};
use ctx_dialect::hygiene::{Ids, Rules, Thoughts, clean};
use ctx_dialect::{anthropic, openai_chat, openai_responses};
use serde_json::Value;

/// A conversation as a request holds it.
pub(crate) fn written(messages: &[Message], rules: &Rules) -> Vec<Value> {
    texts(messages, rules).iter().map(|json| serde_json::from_str(json).expect("JSON")).collect()
}

/// The same, as bytes.
pub(crate) fn texts(messages: &[Message], rules: &Rules) -> Vec<String> {
    let clean = clean(messages, rules);
    let clean = clean.iter().map(AsRef::as_ref);
    let written: Vec<RawJson> = match rules.api.as_str() {
        "anthropic-messages" => anthropic::write(clean).messages,
        "openai-responses" => openai_responses::write(clean),
        _ => openai_chat::write(clean),
    };
    written.iter().map(|json| json.as_str().to_owned()).collect()
}

/// Why a provider refuses a conversation.
pub(crate) fn refusal(messages: &[Value], rules: &Rules) -> Option<String> {
    match rules.api.as_str() {
        "anthropic-messages" => of_anthropic(messages).err(),
        "openai-responses" => of_responses(messages).err(),
        _ => of_chat(messages, rules).err(),
    }
}

type Verdict = Result<(), String>;

fn must(holds: bool, what: &str, value: &Value) -> Verdict {
    if holds { Ok(()) } else { Err(format!("{what}: {value}")) }
}

fn is_word(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn is_filled(text: &Value) -> bool {
    text.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn of_anthropic(messages: &[Value]) -> Verdict {
    let mut called: Vec<String> = Vec::new();
    let mut ever = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        must(message["role"] == role, "roles alternate, and the user begins", message)?;
        let blocks = message["content"].as_array().ok_or("content is a list")?;
        must(!blocks.is_empty(), "content is not empty", message)?;
        let answered: Vec<_> = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| block["tool_use_id"].as_str().unwrap_or_default().to_owned())
            .collect();
        must(answered == called, "the results of all calls, and no others, come next", message)?;
        called.clear();
        for block in blocks {
            anthropic_block(block, role)?;
            if block["type"] == "tool_use" {
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                must(
                    is_word(&id, 64) && ever.insert(id.clone()),
                    "ids are words of their own",
                    block,
                )?;
                called.push(id);
            }
        }
        let last = blocks.last().map(|block| &block["type"]);
        must(last != Some(&Value::from("thinking")), "reasoning is not all", message)?;
    }
    let last = messages.last().unwrap_or(&Value::Null);
    must(messages.is_empty() || last["role"] == "user", "the user is the last", last)
}

fn anthropic_block(block: &Value, role: &str) -> Verdict {
    let is_model = role == "assistant";
    match block["type"].as_str().unwrap_or_default() {
        "text" => must(is_filled(&block["text"]), "text is not blank", block),
        "thinking" => {
            let proof = block["signature"].as_str().unwrap_or_default();
            must(is_model && proof == "EqQBCgIYAhIM", "reasoning is proved", block)
        }
        "redacted_thinking" => must(is_model, "the model thinks", block),
        "tool_use" => {
            let name = block["name"].as_str().unwrap_or_default();
            must(
                is_model && is_word(name, 64) && block["input"].is_object(),
                "a call is sound",
                block,
            )
        }
        "tool_result" => {
            let content = block["content"].as_array().ok_or("a result has content")?;
            must(!is_model && !content.is_empty(), "results are the user's, and filled", block)?;
            content.iter().try_for_each(|inner| match inner["type"].as_str() {
                Some("text" | "image") => anthropic_block(inner, role),
                Some("document") => Ok(()),
                _ => Err(format!("a result holds no such thing: {inner}")),
            })
        }
        "image" => {
            let source = &block["source"];
            let forms = ["image/png", "image/jpeg"];
            let known = forms.iter().any(|form| source["media_type"] == *form);
            must(
                !is_model && (known || source["type"] == "url"),
                "pictures are of a known form",
                block,
            )
        }
        "document" => must(!is_model, "documents are the user's", block),
        other => Err(format!("no such block: {other}")),
    }
}

fn of_responses(items: &[Value]) -> Verdict {
    let mut open = HashSet::new();
    let mut ever = HashSet::new();
    for item in items {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let parts = item["content"].as_array().ok_or("content is a list")?;
                must(!parts.is_empty(), "content is not empty", item)?;
            }
            "reasoning" => {
                must(is_filled(&item["encrypted_content"]), "reasoning is sealed", item)?;
            }
            "function_call" => {
                must(
                    (1..=64).contains(&id.len()) && ever.insert(id),
                    "ids are short and own",
                    item,
                )?;
                let name = item["name"].as_str().unwrap_or_default();
                must(is_word(name, 64) && is_object(&item["arguments"]), "a call is sound", item)?;
                open.insert(id);
            }
            "function_call_output" => {
                must(open.remove(id), "a result follows its call, once", item)?;
                must(
                    is_filled(&item["output"]) || item["output"].is_array(),
                    "it is filled",
                    item,
                )?;
            }
            "web_search_call" => {}
            other => return Err(format!("no such item: {other}")),
        }
    }
    must(open.is_empty(), "each call has its result", &Value::Null)
}

fn is_object(text: &Value) -> bool {
    let text = text.as_str().unwrap_or_default();
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

fn takes(ids: Ids, id: &str) -> bool {
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric());
    match ids {
        Ids::Letters { exactly } => plain && id.len() == exactly,
        Ids::Alphanumeric { most } => plain && (1..=most).contains(&id.len()),
        Ids::Word { most } => is_word(id, most),
        _ => (1..=40).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic()),
    }
}

fn of_chat(messages: &[Value], rules: &Rules) -> Verdict {
    let mut called: Vec<String> = Vec::new();
    let mut ever = HashSet::new();
    let mut before = "";
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let first = (!called.is_empty()).then(|| called.remove(0));
            let id = message["tool_call_id"].as_str();
            must(first.is_some() && first.as_deref() == id, "results follow their calls", message)?;
            must(is_filled(&message["content"]), "a result is filled", message)?;
            before = role;
            continue;
        }
        must(called.is_empty(), "each call has its result", message)?;
        must(rules.names || message.get("name").is_none(), "nobody has a name", message)?;
        if rules.merges {
            must(role != "system" || before.is_empty(), "the system begins", message)?;
            must(role != before, "each speaks in turn", message)?;
        }
        if rules.user_first && matches!(before, "" | "system") {
            must(matches!(role, "user" | "system"), "the user begins", message)?;
        }
        if rules.model_after_tools {
            must(before != "tool" || role == "assistant", "the model speaks after tools", message)?;
        }
        let content = &message["content"];
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let parts = content.as_array().is_some_and(|parts| !parts.is_empty());
        must(is_filled(content) || parts || !calls.is_empty(), "something is said", message)?;
        let thinks =
            message.as_object().is_some_and(|m| m.keys().any(|key| key.contains("reason")));
        must(!thinks || rules.thoughts != Thoughts::None, "no reasoning goes back", message)?;
        let pictures = content.to_string().contains("image_url");
        must(rules.images || !pictures, "no picture is shown", message)?;
        for call in calls {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            must(takes(rules.ids, &id) && ever.insert(id.clone()), "ids are taken", &call)?;
            let function = &call["function"];
            let name = function["name"].as_str().unwrap_or_default();
            must(is_word(name, 64) && is_object(&function["arguments"]), "a call is sound", &call)?;
            called.push(id);
        }
        before = role;
    }
    must(called.is_empty(), "each call has its result", &Value::Null)?;
    let ends_well = !rules.model_not_last || before != "assistant";
    must(ends_well, "the model is not the last", &Value::Null)
}
