//! The prompt of a request, independent of the API.

use ctx_core::text::Slice;
use serde_json::Value;

/// Characters per token, in all counts here.
const CHARS_PER_TOKEN: u64 = 4;
/// The size of an image, in characters.
const IMAGE_CHARS: u64 = 4_800;
/// Maximum nesting of content; deeper content is ignored.
const MAX_DEPTH: usize = 8;

/// The prompt of a request: roles and texts, without tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// Roles and texts in order: system prompt, messages, tool results.
    pub said: Vec<(String, String)>,
    /// Names of the available tools.
    pub tools: Vec<String>,
    /// Size in characters, tool schemas included; an image counts as 4,800.
    pub chars: u64,
    /// For each element of `said`, whether it contains tool results.
    results: Vec<bool>,
}

impl Prompt {
    /// Parses the prompt in a request's body.
    pub fn of(body: &Value) -> Self {
        let mut prompt = Self::default();
        for key in ["system", "instructions", "systemInstruction", "system_instruction"] {
            if let Some(text) = body.get(key) {
                prompt.say("system", text);
            }
        }
        for key in ["messages", "input", "contents"] {
            match body.get(key) {
                Some(Value::Array(items)) => items.iter().for_each(|item| prompt.item(item)),
                Some(text) => prompt.say("user", text),
                None => {}
            }
        }
        for tool in body.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let name = tool.pointer("/function/name").or_else(|| tool.get("name"));
            prompt.tools.extend(name.and_then(Value::as_str).map(str::to_owned));
            let declared = tool.get("functionDeclarations").and_then(Value::as_array);
            let names = declared.into_iter().flatten().filter_map(|tool| tool["name"].as_str());
            prompt.tools.extend(names.map(str::to_owned));
            prompt.chars += tool.to_string().chars().count() as u64;
        }
        prompt
    }

    /// Returns its size in tokens: characters divided by four, rounded up.
    pub fn tokens(&self) -> u64 {
        self.chars.div_ceil(CHARS_PER_TOKEN)
    }

    /// Returns the newest text of the user.
    pub fn last_user(&self) -> &str {
        self.said.iter().rev().find(|(role, _)| role == "user").map_or("", |(_, text)| text)
    }

    /// Returns the roles and texts since the last answer of the model.
    pub fn newest(&self) -> &[(String, String)] {
        let last = self.said.iter().rposition(|(role, _)| role == "assistant");
        self.said.slice(last.map_or(0, |at| at + 1)..)
    }

    /// Whether there is a tool result since the last answer of the model.
    pub fn is_after_tool(&self) -> bool {
        let newest = self.said.len().saturating_sub(self.newest().len());
        self.results.slice(newest..).contains(&true)
    }

    /// Returns all of it as one text.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.said.iter().map(|(_, text)| text.as_str()).collect();
        texts.join("\n")
    }

    /// Returns all of it, with roles and tools. One text is a prefix of another if and only if the
    /// other prompt continues the first.
    pub(super) fn flat(&self) -> String {
        let mut flat = self.tools.join("\u{1f}");
        for (role, text) in &self.said {
            flat.extend(["\u{1e}", role, "\u{1f}", text]);
        }
        flat
    }

    fn item(&mut self, item: &Value) {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
        let role = item.get("role").and_then(Value::as_str);
        let role = match (role, kind) {
            (Some("model"), _) => "assistant",
            (Some(role), _) => role,
            (None, kind) if kind.ends_with("_output") => "tool",
            (None, "message") => "user",
            (None, _) => "assistant",
        };
        self.say(role, item);
        if let Some(last) = self.results.last_mut() {
            *last = role == "tool" || brings_results(item);
        }
    }

    fn say(&mut self, role: &str, value: &Value) {
        let mut text = String::new();
        let images = read(value, &mut text, 0);
        self.chars += text.chars().count() as u64 + images * IMAGE_CHARS;
        self.said.push((role.to_owned(), text));
        self.results.push(false);
    }
}

/// Whether a user message contains tool results, as in some APIs.
fn brings_results(item: &Value) -> bool {
    let parts = ["content", "parts"].iter().find_map(|list| item.get(*list)?.as_array());
    let is_result =
        |part: &Value| part["type"] == "tool_result" || part.get("functionResponse").is_some();
    parts.is_some_and(|parts| parts.iter().any(is_result))
}

/// Appends the text of a content value and returns the number of its images.
fn read(value: &Value, text: &mut String, depth: usize) -> u64 {
    match value {
        _ if depth > MAX_DEPTH => 0,
        Value::String(s) => {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(s);
            0
        }
        Value::Array(all) => all.iter().map(|v| read(v, text, depth + 1)).sum(),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            if kind.contains("image")
                || fields.contains_key("inlineData")
                || fields.contains_key("fileData")
            {
                return 1;
            }
            let keys = [
                "text",
                "thinking",
                "reasoning_content",
                "summary",
                "content",
                "parts",
                "functionCall",
                "functionResponse",
                "output",
                "name",
                "arguments",
                "tool_calls",
                "function",
            ];
            let mut images: u64 = keys
                .iter()
                .filter_map(|key| fields.get(*key))
                .map(|v| read(v, text, depth + 1))
                .sum();
            // In Anthropic's and Ollama's format, arguments of a call are an object.
            for key in ["input", "arguments", "args"] {
                if let Some(object @ Value::Object(_)) = fields.get(key) {
                    images += read(&Value::String(object.to_string()), text, depth + 1);
                }
            }
            // The result of a function is any object; most have an `output` field.
            if let Some(response) = fields.get("response") {
                let said = match response.get("output").or_else(|| response.get("error")) {
                    Some(said @ Value::String(_)) => said.clone(),
                    _ => Value::String(response.to_string()),
                };
                images += read(&said, text, depth + 1);
            }
            images
        }
        _ => 0,
    }
}

/// Returns the tokens of an answer's text.
pub(super) fn tokens_of(chars: u64) -> u64 {
    chars.div_ceil(CHARS_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_api_gives_the_same_prompt() {
        let requests = [
            json!({ "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": [{ "type": "text", "text": "read it" }] },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c", "function": { "name": "read", "arguments": "{\"path\":\"a\"}" } }] },
                { "role": "tool", "tool_call_id": "c", "content": "it says a" },
            ]}),
            json!({ "instructions": "be brief", "input": [
                { "role": "user", "content": [{ "type": "input_text", "text": "read it" }] },
                { "type": "function_call", "name": "read", "arguments": "{\"path\":\"a\"}" },
                { "type": "function_call_output", "call_id": "c", "output": "it says a" },
            ]}),
            json!({ "system": "be brief", "messages": [
                { "role": "user", "content": "read it" },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "c", "name": "read", "input": { "path": "a" } }] },
                { "role": "tool", "content": [
                    { "type": "tool_result", "tool_use_id": "c", "content": "it says a" }] },
            ]}),
        ];
        for request in requests {
            let prompt = Prompt::of(&request);
            let said = [
                ("system", "be brief"),
                ("user", "read it"),
                ("assistant", "read\n{\"path\":\"a\"}"),
                ("tool", "it says a"),
            ];
            assert_eq!(prompt.said, said.map(|(a, b)| (a.to_owned(), b.to_owned())), "{request}");
            assert_eq!(prompt.last_user(), "read it");
        }
    }
}
