//! OpenAI chat completions, and compatible providers with rules of their own.

use std::collections::HashSet;

use serde_json::Value;

use super::house::House;
use super::{
    Fault, Verdict, invalid_value, is_blank, json_text, list, not_empty, not_longer, openai_name,
    text,
};

const ROLES: &str = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'";
const PARTS: [&str; 6] = ["text", "image_url", "input_audio", "file", "refusal", "thinking"];

/// The conversation so far.
#[derive(Default)]
struct Conversation<'a> {
    /// Calls without a result yet.
    open: Vec<&'a str>,
    ever: HashSet<&'a str>,
    /// The role of the previous message.
    before: &'a str,
}

pub(super) fn check(body: &Value, house: &House) -> Verdict {
    let messages = list(&body["messages"]);
    not_empty(messages, "messages")?;
    let mut so_far = Conversation::default();
    for (n, message) in messages.iter().enumerate() {
        so_far.take(n, message, house)?;
    }
    so_far.no_open_calls()?;
    if house.user_last && so_far.before == "assistant" {
        refuse!(
            "Expected last role User or Tool (or Assistant with prefix True) for serving \
            but got assistant"
        );
    }
    Ok(())
}

impl<'a> Conversation<'a> {
    fn no_open_calls(&self) -> Verdict {
        if self.open.is_empty() {
            return Ok(());
        }
        let message = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to \
             each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
            self.open.join(", ")
        );
        Err(Fault::new(message).at("messages"))
    }

    fn take(&mut self, n: usize, message: &'a Value, house: &House) -> Verdict {
        let role = text(message, "role");
        if role == "tool" {
            return self.take_result(n, message, house);
        }
        self.no_open_calls()?;
        if !["system", "developer", "user", "assistant", "function"].contains(&role) {
            return Err(invalid_value(role, ROLES, &format!("messages[{n}].role")));
        }
        if !house.names && message.get("name").is_some() {
            refuse!("messages[{n}]: Extra inputs are not permitted: name");
        }
        self.in_turn(role, house)?;
        check_content(n, message, role, house)?;
        if role == "assistant" {
            self.take_calls(n, message, house)?;
        }
        self.before = role;
        Ok(())
    }

    fn in_turn(&self, role: &str, house: &House) -> Verdict {
        let is_system = |role: &str| matches!(role, "system" | "developer");
        let (before, begun) = (self.before, !self.before.is_empty() && !is_system(self.before));
        // Mistral's wording; templates of local servers have other texts with the same meaning.
        let wrong =
            |role: &str| Err(Fault::new(format!("Unexpected role '{role}' after role '{before}'")));
        if house.alternates && (role == before || (is_system(role) && begun)) {
            return wrong(role);
        }
        if house.user_first && !begun && role != "user" && !is_system(role) {
            return wrong(role);
        }
        if house.model_after_tools && before == "tool" && role != "assistant" {
            return wrong(role);
        }
        Ok(())
    }

    fn take_result(&mut self, n: usize, message: &'a Value, house: &House) -> Verdict {
        let id = text(message, "tool_call_id");
        let Some(at) = self.open.iter().position(|open| *open == id) else {
            let message = "Invalid parameter: messages with role 'tool' must be a response to a \
                preceeding message with 'tool_calls'.";
            return Err(Fault::new(message).at(format!("messages.[{n}].role")));
        };
        self.open.remove(at);
        check_content(n, message, "tool", house)?;
        self.before = "tool";
        Ok(())
    }

    fn take_calls(&mut self, n: usize, message: &'a Value, house: &House) -> Verdict {
        let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) else {
            return Ok(());
        };
        not_empty(list(calls), &format!("messages[{n}].tool_calls"))?;
        for (k, call) in list(calls).iter().enumerate() {
            let at = format!("messages[{n}].tool_calls[{k}]");
            let id = text(call, "id");
            if let super::Ids::Printable(most) = house.ids {
                not_longer(id, most, &format!("{at}.id"))?;
            }
            if !house.ids.takes(id) {
                // Mistral's wording.
                let message =
                    format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.");
                return Err(Fault::new(message).at(format!("{at}.id")));
            }
            if self.open.contains(&id) || (!self.ever.insert(id) && house.ids_once) {
                let message = format!("Invalid '{at}.id': duplicate id '{id}'.");
                return Err(Fault::new(message).at(format!("{at}.id")));
            }
            self.open.push(id);
            match &call["custom"] {
                Value::Null => {
                    let function = &call["function"];
                    openai_name(text(function, "name"), &format!("{at}.function.name"))?;
                    json_text(&function["arguments"], house, &format!("{at}.function.arguments"))?;
                }
                custom => openai_name(text(custom, "name"), &format!("{at}.custom.name"))?,
            }
        }
        Ok(())
    }
}

fn check_content(n: usize, message: &Value, role: &str, house: &House) -> Verdict {
    let at = format!("messages[{n}].content");
    let calls = !list(&message["tool_calls"]).is_empty() || message["function_call"].is_object();
    let reasoning = ["reasoning_content", "reasoning", "reasoning_text"];
    if !house.reasoning && reasoning.iter().any(|key| message.get(*key).is_some()) {
        refuse!("messages[{n}]: Extra inputs are not permitted: reasoning");
    }
    match &message["content"] {
        Value::String(text) if house.filled && is_blank(text) && !calls => Err(empty(&at)),
        Value::String(_) => Ok(()),
        Value::Array(parts) => {
            not_empty(parts, &at)?;
            for (k, part) in parts.iter().enumerate() {
                let kind = text(part, "type");
                if !PARTS.contains(&kind) {
                    let known = "'text', 'image_url', 'input_audio', 'refusal', and 'file'";
                    return Err(invalid_value(kind, known, &format!("{at}[{k}]")));
                }
                if !house.images && kind == "image_url" {
                    let message = "unknown variant `image_url`, expected `text`";
                    return Err(Fault::new(message).at(format!("{at}[{k}]")));
                }
                if kind == "text" && !part["text"].is_string() {
                    return Err(Fault::new(format!(
                        "Missing required parameter: '{at}[{k}].text'."
                    ))
                    .at(format!("{at}[{k}].text"))
                    .code("missing_required_parameter"));
                }
            }
            Ok(())
        }
        Value::Null if role == "assistant" && (calls || message["refusal"].is_string()) => Ok(()),
        Value::Null => {
            let message = "Invalid value for 'content': expected a string, got null.";
            Err(Fault::new(message).at(format!("messages.[{n}].content")))
        }
        _ => Err(Fault::new(format!("Invalid type for '{at}'.")).at(at).code("invalid_type")),
    }
}

fn empty(at: &str) -> Fault {
    Fault::new(format!("Invalid '{at}': empty text.")).at(at)
}
