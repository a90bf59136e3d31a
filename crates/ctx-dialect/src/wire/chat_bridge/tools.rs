//! Tools of the Responses API as functions of chat completions.

use std::collections::HashMap;

use ctx_core::{RawJson, ToolSpec};
use serde_json::value::RawValue;

use crate::json::Object;
use crate::tools;

/// Maximum length of a function's name.
const LONGEST_NAME: usize = 64;

/// The parameters of a tool whose input is a text.
const TEXT_INPUT: &str =
    r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}"#;

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
    functions: Vec<ToolSpec>,
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
        (!self.functions.is_empty()).then(|| tools::for_openai_chat(&self.functions))
    }

    /// Returns the tool behind a function of that name.
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
        let parameters = match is_custom {
            true => TEXT_INPUT,
            false => tool.get("parameters").map_or("", |raw| raw.get()),
        };
        let grammar = tool.object("format").and_then(|format| format.owned("definition"));
        let texts = [tool.owned("description"), grammar];
        let in_chat = chat_name(namespace, &name);
        self.functions.push(ToolSpec {
            name: in_chat.clone(),
            description: texts.into_iter().flatten().collect::<Vec<_>>().join("\n\n"),
            parameters: RawJson::from_text(parameters),
        });
        let namespace = namespace.map(str::to_owned);
        self.known.insert(in_chat, ClientTool { namespace, name, is_custom });
    }
}

/// Returns the name of a tool in chat, which has no namespaces.
pub(super) fn chat_name(namespace: Option<&str>, name: &str) -> String {
    let whole = namespace.map_or_else(|| name.to_owned(), |space| format!("{space}__{name}"));
    whole.chars().take(LONGEST_NAME).collect()
}
