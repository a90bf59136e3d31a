//! What a tool answers: text for a model, and the same as JSON for a program.

use ctx_core::{Error, ErrorKind, Result};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::lines::Data;

/// What a tool found.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) structured: Value,
}

impl Answer {
    pub(super) fn new(text: String, structured: &impl Serialize) -> Result<Self> {
        let structured = serde_json::to_value(structured).map_err(|e| {
            Error::new(ErrorKind::Contract, "the answer cannot be written as JSON").source(e)
        })?;
        Ok(Self { text, structured })
    }
}

/// The result of a call: an error of the tool is one that the model sees and may act upon.
pub(super) fn result(answer: Result<Answer>) -> CallToolResult {
    match answer {
        Ok(Answer { text, structured }) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(structured);
            result
        }
        Err(error) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(told(&error))]);
            result.structured_content = Some(json!({ "error": told_as_json(&error) }));
            result
        }
    }
}

/// An error of what is no tool call.
pub(super) fn failure(error: &Error) -> ErrorData {
    let data = Some(told_as_json(error));
    let message = error.to_string();
    match error.kind() {
        ErrorKind::NotFound => ErrorData::resource_not_found(message, data),
        ErrorKind::InvalidInput => ErrorData::invalid_params(message, data),
        _ => ErrorData::internal_error(message, data),
    }
}

fn told(error: &Error) -> String {
    let mut said = format!("error: {error}");
    let cause = std::error::Error::source(error).map(ToString::to_string);
    if let Some(cause) = cause.filter(|cause| !said.contains(cause)) {
        said.push_str(&format!("\nbecause: {cause}"));
    }
    if let Some(hint) = error.hint_text().filter(|hint| !hint.is_empty()) {
        said.push_str(&format!("\nhint: {hint}"));
    }
    said
}

fn told_as_json(error: &Error) -> Value {
    let mut told = serde_json::to_value(Data::from(error)).unwrap_or_default();
    told["message"] = error.to_string().into();
    told
}

/// The arguments of a call.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`], naming the argument and what it should be.
pub(super) fn arguments<T: DeserializeOwned>(given: JsonObject) -> Result<T> {
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|e| {
        let at = e.path().to_string();
        let error =
            Error::new(ErrorKind::InvalidInput, format!("the arguments do not fit: {}", e.inner()));
        let error = if at == "." { error } else { error.with("argument", at) };
        error.hint("`tools/list` has the schema of each tool's arguments")
    })
}

/// Refuses a text that is longer than anything that is meant.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`].
pub(super) fn at_most(argument: &'static str, text: &str, most: usize) -> Result<()> {
    if text.len() <= most {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "the argument is too long")
        .with("argument", argument)
        .with("bytes", text.len())
        .with("most", most)
        .hint("send less: a question, a name or a citation is short"))
}

/// A text of at most so many characters, with a mark where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
