//! Tool schemas in the format of each provider.

use ctx_core::ToolSpec;
use serde_json::value::RawValue;

use crate::anthropic::mark;
use crate::json::{Object, ObjectWriter, array, elements};

/// Writes tools for OpenAI Chat.
#[must_use]
pub fn for_openai_chat(specs: &[ToolSpec]) -> String {
    array(specs.iter().map(|spec| {
        let function = Tool::from(spec).fields("parameters").end();
        ObjectWriter::new().text("type", "function").raw("function", function).end()
    }))
}

/// Writes tools for OpenAI Responses. Strict mode is off, because few schemas are eligible.
#[must_use]
pub fn for_openai_responses(specs: &[ToolSpec]) -> String {
    array(specs.iter().map(|spec| {
        let function = ObjectWriter::new().text("type", "function");
        function.with(&Tool::from(spec).fields("parameters")).plain("strict", false).end()
    }))
}

/// Writes tools for Anthropic. `marked` adds a cache mark to the last tool.
#[must_use]
pub fn for_anthropic(specs: &[ToolSpec], marked: bool) -> String {
    let mut tools: Vec<_> =
        specs.iter().map(|spec| Tool::from(spec).fields("input_schema").end()).collect();
    if let Some(last) = tools.last_mut().filter(|_| marked) {
        *last = mark(last);
    }
    array(tools)
}

/// Writes function declarations for Gemini.
#[must_use]
pub fn for_gemini(specs: &[ToolSpec]) -> String {
    array(specs.iter().map(|spec| Tool::from(spec).fields("parameters").end()))
}

/// Converts a list of tools for OpenAI Chat. Entries other than functions (a provider's own tools,
/// invalid values) are returned unchanged in the second list.
#[must_use]
pub fn to_openai(tools: &RawValue) -> (String, Vec<&str>) {
    convert(tools, |tool| {
        let function = tool.fields("parameters").end();
        ObjectWriter::new().text("type", "function").raw("function", function).end()
    })
}

/// Converts a list of tools for Anthropic; see [`to_openai`].
#[must_use]
pub fn to_anthropic(tools: &RawValue) -> (String, Vec<&str>) {
    convert(tools, |tool| tool.fields("input_schema").end())
}

fn convert(tools: &RawValue, write: impl Fn(&Tool<'_>) -> String) -> (String, Vec<&str>) {
    let mut written = Vec::new();
    let mut others = Vec::new();
    for raw in elements(tools).unwrap_or_default() {
        match Tool::of(raw) {
            Some(tool) => written.push(write(&tool)),
            None => others.push(raw.get()),
        }
    }
    (array(written), others)
}

/// A function that a model may call.
struct Tool<'a> {
    name: String,
    description: Option<String>,
    schema: Option<&'a RawValue>,
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        let description = Some(spec.description.clone()).filter(|text| !text.is_empty());
        let schema = serde_json::from_str(spec.parameters.as_str()).ok();
        Self { name: spec.name.clone(), description, schema }
    }
}

impl<'a> Tool<'a> {
    fn of(raw: &'a RawValue) -> Option<Self> {
        let object = Object::of(raw)?;
        let inner = object.object("function").unwrap_or(object);
        if inner.text("type").is_some_and(|kind| !matches!(&*kind, "function" | "custom")) {
            return None;
        }
        Some(Self {
            name: inner.owned("name")?,
            description: inner.owned("description"),
            schema: inner.first(&["parameters", "input_schema", "inputSchema"]),
        })
    }

    fn fields(&self, schema: &str) -> ObjectWriter {
        ObjectWriter::new()
            .text("name", &self.name)
            .text_if("description", self.description.as_deref())
            .raw(schema, self.schema.map_or(r#"{"type":"object"}"#, RawValue::get))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_wrapped_as_the_provider_wants_them() {
        let openai = r#"[{"type":"function","function":{"name":"f","description":"d","parameters":{"x":1.50}}}]"#;
        let anthropic = r#"[{"name":"f","description":"d","input_schema":{"x":1.50}}]"#;
        let responses =
            r#"[{"type":"function","name":"f","description":"d","parameters":{"x":1.50}}]"#;
        for tools in [openai, anthropic, responses] {
            let raw = serde_json::from_str(tools).unwrap();
            assert_eq!(to_openai(raw), (openai.to_owned(), vec![]));
            assert_eq!(to_anthropic(raw), (anthropic.to_owned(), vec![]));
        }
        let raw = serde_json::from_str(r#"[{"type":"web_search_20250305","name":"w"},5]"#).unwrap();
        assert_eq!(to_openai(raw).1.len(), 2);
        assert_eq!(to_openai(serde_json::from_str("{}").unwrap()).0, "[]");
    }
}
