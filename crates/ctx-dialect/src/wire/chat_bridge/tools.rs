//! Tools of the Responses API as functions of chat completions.

use std::collections::HashMap;

use serde_json::json;
use serde_json::value::RawValue;

use crate::json::{Object, ObjectWriter, array};

/// Maximum length of a function's name.
const LONGEST_NAME: usize = 64;

/// A tool as the client knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientTool {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// Whether its input is a text instead of JSON.
    pub(super) is_custom: bool,
}

/// The functions of a chat request.
#[derive(Clone, Debug, Default)]
pub(super) struct ChatTools {
    functions: Vec<String>,
    /// By their names in chat.
    known: HashMap<String, ClientTool>,
}

impl ChatTools {
    pub(super) fn of(request: &Object<'_>) -> Self {
        let mut tools = Self::default();
        for raw in request.array("tools").unwrap_or_default() {
            tools.add(None, raw);
        }
        tools
    }

    /// Returns them as JSON, if there are any.
    pub(super) fn json(&self) -> Option<String> {
        (!self.functions.is_empty()).then(|| array(&self.functions))
    }

    /// Returns the tool that a function of that name stands for.
    pub(super) fn find(&self, name: &str) -> ClientTool {
        let unknown = || ClientTool { name: name.to_owned(), ..ClientTool::default() };
        self.known.get(name).cloned().unwrap_or_else(unknown)
    }

    fn add(&mut self, namespace: Option<&str>, raw: &RawValue) {
        let Some(tool) = Object::of(raw) else { return };
        let Some(name) = tool.owned("name") else { return };
        let kind = tool.owned("type").unwrap_or_default();
        if kind == "namespace" {
            for inner in tool.array("tools").unwrap_or_default() {
                self.add(Some(&name), inner);
            }
            return;
        }
        let is_custom = kind == "custom";
        if !is_custom && kind != "function" {
            return;
        }
        let text_input = || {
            json!({ "type": "object", "properties": { "input": { "type": "string" } },
                "required": ["input"] })
            .to_string()
        };
        let parameters = match is_custom {
            true => Some(text_input()),
            false => tool.get("parameters").map(|raw| raw.get().to_owned()),
        };
        let grammar = tool.object("format").and_then(|format| format.owned("definition"));
        let texts = [tool.owned("description"), grammar];
        let description = texts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let in_chat = chat_name(namespace, &name);
        let function = ObjectWriter::new()
            .text("name", &in_chat)
            .text("description", &description)
            .raw_if("parameters", parameters);
        let function =
            ObjectWriter::new().text("type", "function").raw("function", function.end()).end();
        self.functions.push(function);
        let namespace = namespace.map(str::to_owned);
        self.known.insert(in_chat, ClientTool { namespace, name, is_custom });
    }
}

/// Returns the name of a tool in chat, which has no namespaces.
pub(super) fn chat_name(namespace: Option<&str>, name: &str) -> String {
    let whole = namespace.map_or_else(|| name.to_owned(), |space| format!("{space}__{name}"));
    whole.chars().take(LONGEST_NAME).collect()
}
