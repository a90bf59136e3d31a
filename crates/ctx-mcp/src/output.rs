//! Tool results: text for a model, and the same as JSON for a program.

use ctx_core::{Error, ErrorKind, Result};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use ctx_server::lines::Data;

/// The output of a tool.
#[derive(Debug)]
pub(super) struct ToolOutput {
    pub(super) text: String,
    pub(super) structured: Value,
}

impl ToolOutput {
    pub(super) fn new(text: String, structured: &impl Serialize) -> Result<Self> {
        let structured = serde_json::to_value(structured).map_err(|e| {
            Error::new(ErrorKind::Contract, "cannot write the answer as JSON").source(e)
        })?;
        Ok(Self { text, structured })
    }
}

/// Returns the result of a call. Tool errors are visible to the model, which may act on them.
pub(super) fn result(answer: Result<ToolOutput>) -> CallToolResult {
    match answer {
        Ok(ToolOutput { text, structured }) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(structured);
            result
        }
        Err(error) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(error_text(&error))]);
            result.structured_content = Some(json!({ "error": error_json(&error) }));
            result
        }
    }
}

/// Returns the error of a request other than a tool call.
pub(super) fn failure(error: &Error) -> ErrorData {
    let data = Some(error_json(error));
    let message = error.to_string();
    match error.kind() {
        ErrorKind::NotFound => ErrorData::resource_not_found(message, data),
        ErrorKind::InvalidInput => ErrorData::invalid_params(message, data),
        _ => ErrorData::internal_error(message, data),
    }
}

fn error_text(error: &Error) -> String {
    let mut text = format!("error: {error}");
    let cause = std::error::Error::source(error).map(ToString::to_string);
    if let Some(cause) = cause.filter(|cause| !text.contains(cause)) {
        text.push_str(&format!("\nbecause: {cause}"));
    }
    if let Some(hint) = error.hint_text().filter(|hint| !hint.is_empty()) {
        text.push_str(&format!("\nhint: {hint}"));
    }
    text
}

fn error_json(error: &Error) -> Value {
    let mut json = serde_json::to_value(Data::from(error)).unwrap_or_default();
    json["message"] = error.to_string().into();
    json
}

/// Parses the arguments of a call.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`], naming the argument and the expected value.
pub(super) fn arguments<T: DeserializeOwned>(given: JsonObject) -> Result<T> {
    serde_path_to_error::deserialize(&Value::Object(given)).map_err(|e| {
        let at = e.path().to_string();
        let error =
            Error::new(ErrorKind::InvalidInput, format!("invalid arguments: {}", e.inner()));
        let error = if at == "." { error } else { error.with("argument", at) };
        error.hint("`tools/list` has the schema of each tool's arguments")
    })
}

/// Refuses a text that is too long.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`].
pub(super) fn at_most(argument: &'static str, text: &str, most: usize) -> Result<()> {
    if text.len() <= most {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "argument too long")
        .with("argument", argument)
        .with("bytes", text.len())
        .with("most", most)
        .hint("shorten it: a question, a name or a citation is enough"))
}
