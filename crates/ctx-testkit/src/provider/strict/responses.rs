//! OpenAI responses.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::house::House;
use super::seals::{SEALED, Seals, Validity};
use super::{
    Fault, Verdict, invalid_value, is_blank, json_text, list, not_empty, not_longer, openai_name,
    text,
};

const ROLES: &str = "'assistant', 'system', 'developer', and 'user'";

/// Kinds of items that are not checked further.
const OTHERS: &str = "item_reference web_search_call file_search_call image_generation_call \
    code_interpreter_call mcp_call mcp_list_tools mcp_approval_request mcp_approval_response \
    compaction program";

/// Kinds of calls, the kinds of their results, and their names in errors.
const CALLS: [(&str, &str, &str); 7] = [
    ("function_call", "function_call_output", "function call"),
    ("custom_tool_call", "custom_tool_call_output", "custom tool call"),
    ("local_shell_call", "local_shell_call_output", "local shell call"),
    ("shell_call", "shell_call_output", "shell call"),
    ("apply_patch_call", "apply_patch_call_output", "apply patch call"),
    ("computer_call", "computer_call_output", "computer call"),
    ("tool_search_call", "tool_search_output", "tool search call"),
];

pub(super) fn check(body: &Value, house: &House, seals: &Seals) -> Verdict {
    let items = match &body["input"] {
        Value::String(_) => return Ok(()),
        Value::Array(items) => items,
        _ => {
            let message = "One of \"input\" or \"previous_response_id\" or 'prompt' or \
                'conversation_id' must be provided.";
            return Err(Fault::new(message).at("input").code("missing_required_parameter"));
        }
    };
    let is_continued =
        ["previous_response_id", "conversation"].iter().any(|key| !body[*key].is_null());
    if !is_continued {
        not_empty(items, "input")?;
    }
    let stored = body["store"].as_bool().unwrap_or(true);
    let mut items_so_far =
        Items { house, seals, stored, calls: HashMap::new(), reasoned: HashSet::new() };
    for (n, item) in items.iter().enumerate() {
        items_so_far.take(n, item, items.get(n + 1))?;
    }
    match items_so_far.unanswered(items) {
        Some((id, name)) if !is_continued => {
            Err(Fault::new(format!("No tool output found for {name} {id}.")).at("input"))
        }
        _ => Ok(()),
    }
}

struct Items<'a> {
    house: &'a House,
    seals: &'a Seals,
    stored: bool,
    /// Calls by id, with the kind of their results, and whether there is a result.
    calls: HashMap<&'a str, (&'static str, bool)>,
    /// Answers whose reasoning is present.
    reasoned: HashSet<usize>,
}

impl<'a> Items<'a> {
    fn unanswered(&self, items: &'a [Value]) -> Option<(&'a str, &'static str)> {
        items.iter().find_map(|item| {
            let id = text(item, "call_id");
            let row = CALLS.iter().find(|row| row.0 == text(item, "type"))?;
            let open = self.calls.get(id).is_some_and(|(_, answered)| !answered);
            open.then_some((id, row.2))
        })
    }

    fn take(&mut self, n: usize, item: &'a Value, next: Option<&Value>) -> Verdict {
        let kind = item["type"].as_str().unwrap_or("message");
        let at = format!("input[{n}]");
        // The call ran on the provider's side, so its output refers to no id.
        if kind.starts_with("tool_search") && item["call_id"].is_null() {
            return self.needs_reasoning(item, kind);
        }
        if let Some(row) = CALLS.iter().find(|row| row.0 == kind) {
            self.take_call(item, row.1, &at)?;
        } else if let Some(row) = CALLS.iter().find(|row| row.1 == kind) {
            return self.take_output(item, *row);
        } else if kind == "reasoning" {
            return self.take_reasoning(item, next);
        } else if kind == "message" {
            check_message(item, &at, self.house)?;
        } else if OTHERS.split(' ').all(|other| other != kind) {
            return Err(invalid_value(kind, "'message', 'reasoning', and others", &at));
        }
        self.needs_reasoning(item, kind)
    }

    /// An item that followed reasoning is refused without it.
    fn needs_reasoning(&self, item: &Value, kind: &str) -> Verdict {
        let id = text(item, "id");
        let Some(answer) = self.seals.answer_of(id) else { return Ok(()) };
        if self.seals.has_reasoned(answer) && !self.reasoned.contains(&answer) {
            let message = format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: \
                 'rs_{answer}'."
            );
            return Err(Fault::new(message).at("input"));
        }
        Ok(())
    }

    fn take_call(&mut self, item: &'a Value, output: &'static str, at: &str) -> Verdict {
        let id = text(item, "call_id");
        not_longer(id, 64, &format!("{at}.call_id"))?;
        if id.is_empty() || (self.calls.contains_key(id) && self.house.ids_once) {
            let message = format!("Invalid '{at}.call_id': missing or duplicate id '{id}'.");
            return Err(Fault::new(message).at(format!("{at}.call_id")));
        }
        if output == "function_call_output" {
            openai_name(text(item, "name"), &format!("{at}.name"))?;
            json_text(&item["arguments"], self.house, &format!("{at}.arguments"))?;
        }
        if let Some(id) = item["id"].as_str()
            && output == "function_call_output"
            && !id.starts_with("fc")
        {
            let message =
                format!("Invalid '{at}.id': '{id}'. Expected an ID that begins with 'fc'.");
            return Err(Fault::new(message).at(format!("{at}.id")).code("invalid_value"));
        }
        self.calls.insert(id, (output, false));
        Ok(())
    }

    fn take_output(&mut self, item: &'a Value, row: (&str, &str, &str)) -> Verdict {
        let id = text(item, "call_id");
        let known = self.calls.get_mut(id).filter(|(kind, done)| *kind == row.1 && !done);
        let Some((_, answered)) = known else {
            let message = format!("No tool call found for {} output with call_id {id}.", row.2);
            return Err(Fault::new(message).at("input"));
        };
        *answered = true;
        let output = match row.1 {
            "tool_search_output" => &item["tools"],
            _ => &item["output"],
        };
        let is_said = match output {
            Value::String(text) => !self.house.filled || !is_blank(text),
            Value::Array(parts) => !parts.is_empty() || row.1 == "tool_search_output",
            other => other.is_object(),
        };
        if is_said {
            return Ok(());
        }
        Err(Fault::new("Missing required parameter: 'output'.").code("missing_required_parameter"))
    }

    fn take_reasoning(&mut self, item: &Value, next: Option<&Value>) -> Verdict {
        let id = text(item, "id");
        let follows = next.is_some_and(|next| {
            let kind = next["type"].as_str().unwrap_or("message");
            let is_answer = kind != "message" || next["role"] == "assistant";
            is_answer && !kind.ends_with("_output")
        });
        if !follows {
            return Err(not_followed(id));
        }
        let sealed = text(item, "encrypted_content");
        if sealed.is_empty() {
            let known = self.seals.answer_of(id);
            let Some(answer) = known.filter(|_| self.stored) else {
                let hint = match self.stored {
                    true => "",
                    false => {
                        " Items are not persisted when `store` is set to false. Try again with \
                         `store` set to true, or remove this item from your input."
                    }
                };
                return Err(Fault::new(format!("Item with id '{id}' not found.{hint}"))
                    .status(404)
                    .at("input"));
            };
            self.reasoned.insert(answer);
            return Ok(());
        }
        match self.seals.validity(sealed, SEALED) {
            Validity::Trusted => {}
            Validity::Proves(answer) => {
                let own = self.seals.answer_of(next.map_or("", |next| text(next, "id")));
                if own.is_some_and(|own| own != answer) {
                    return Err(not_followed(id));
                }
                self.reasoned.insert(answer);
            }
            Validity::Stale | Validity::Unknown => {
                let message = format!(
                    "The encrypted content {}... could not be verified. Reason: Encrypted content \
                     could not be decrypted or parsed.",
                    sealed.chars().take(8).collect::<String>()
                );
                return Err(Fault::new(message).code("invalid_encrypted_content"));
            }
        }
        Ok(())
    }
}

fn not_followed(id: &str) -> Fault {
    let what = "was provided without its required following item.";
    Fault::new(format!("Item '{id}' of type 'reasoning' {what}")).at("input")
}

fn check_message(item: &Value, at: &str, house: &House) -> Verdict {
    let role = text(item, "role");
    if !["assistant", "system", "developer", "user"].contains(&role) {
        return Err(invalid_value(role, ROLES, &format!("{at}.role")));
    }
    let parts = match &item["content"] {
        Value::String(text) if house.filled && is_blank(text) => &[][..],
        Value::String(_) => return Ok(()),
        content => list(content),
    };
    not_empty(parts, &format!("{at}.content"))?;
    let (kinds, known): (&[&str], _) = match role {
        "assistant" => (&["output_text", "refusal"], "'output_text' and 'refusal'"),
        _ => (
            &["input_text", "input_image", "input_file", "input_audio"],
            "'input_text', 'input_image', and 'input_file'",
        ),
    };
    for (k, part) in parts.iter().enumerate() {
        let kind = text(part, "type");
        if !kinds.contains(&kind) {
            return Err(invalid_value(kind, known, &format!("{at}.content[{k}]")));
        }
    }
    if let Some(id) = item["id"].as_str().filter(|id| !id.starts_with("msg")) {
        let message = format!("Invalid '{at}.id': '{id}'. Expected an ID that begins with 'msg'.");
        return Err(Fault::new(message).at(format!("{at}.id")).code("invalid_value"));
    }
    Ok(())
}
