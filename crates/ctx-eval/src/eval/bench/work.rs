//! The agent's work: changed files, and the open items of its todo list.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use ctx_core::ToolCall;
use serde::Deserialize;
use serde_json::Value;

use super::handles::{Handle, HandleKind, handles};
use super::session::Item;

/// `data/tools.toml`.
#[derive(Deserialize)]
struct Tools {
    edit: Vec<Edit>,
    todo: Vec<Todo>,
}

/// A tool that changes files.
#[derive(Deserialize)]
struct Edit {
    /// Its names, in lower case.
    names: Vec<String>,
    /// Arguments that hold a path, or the patch that names it.
    arguments: Vec<String>,
    /// Line beginnings before a path in a patch. If there are none, the argument is a path.
    #[serde(default)]
    lines: Vec<String>,
    /// An argument, and its values with which the tool changes nothing.
    except: Option<(String, Vec<String>)>,
}

/// A tool that replaces the todo list.
#[derive(Deserialize)]
struct Todo {
    names: Vec<String>,
    /// Arguments that hold the list.
    arguments: Vec<String>,
    /// Fields of an item that hold its text.
    texts: Vec<String>,
    /// Values of `status` that mark an item as not open.
    closed: Vec<String>,
}

static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../data/tools.toml")).expect("a test parses the table")
});

/// Returns the files that calls before the cut changed.
pub(super) fn changed_files(history: &[Arc<Item>]) -> BTreeSet<Handle> {
    calls(history).flat_map(|(name, call)| paths(&name, &arguments(call))).collect()
}

/// Returns the open items of the todo list at the cut.
pub(super) fn open_todos(history: &[Arc<Item>]) -> Vec<String> {
    let lists = calls(history).filter_map(|(name, call)| todos(&name, &arguments(call)));
    lists.last().unwrap_or_default()
}

/// Whether a text contains an item of the todo list, ignoring case and white space.
pub(super) fn names_todo(plain: &str, todo: &str) -> bool {
    plain.contains(&plain_text(todo))
}

/// Returns a text in lower case, with single spaces as white space.
pub(super) fn plain_text(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn calls(history: &[Arc<Item>]) -> impl Iterator<Item = (String, &ToolCall)> {
    let calls = history.iter().flat_map(|item| item.message.tool_calls());
    calls.map(|call| (call.name.to_lowercase(), call))
}

fn arguments(call: &ToolCall) -> Value {
    serde_json::from_str(call.arguments.as_str()).unwrap_or_default()
}

fn paths(name: &str, arguments: &Value) -> Vec<Handle> {
    let tool = TOOLS.edit.iter().find(|tool| tool.names.iter().any(|known| known == name));
    let Some(tool) = tool else { return Vec::new() };
    let is_excepted = tool.except.as_ref().is_some_and(|(argument, values)| {
        arguments[argument].as_str().is_some_and(|value| values.iter().any(|known| known == value))
    });
    let texts = tool.arguments.iter().filter_map(|argument| match &arguments[argument] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    });
    let texts = texts.filter(|_| !is_excepted);
    let named = texts.flat_map(|text| match tool.lines.is_empty() {
        true => vec![text],
        false => text.lines().filter_map(|line| of_patch(line, &tool.lines)).collect(),
    });
    named.filter_map(|path| path_of(&path)).collect()
}

fn of_patch(line: &str, beginnings: &[String]) -> Option<String> {
    beginnings.iter().find_map(|beginning| line.strip_prefix(beginning)).map(str::to_owned)
}

/// Returns the handle of a path.
fn path_of(path: &str) -> Option<Handle> {
    // Before a colon, a path is recognised even if it has a single part.
    let parts: Vec<&str> = path.trim().split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let known = handles(path.trim()).into_iter().find(|handle| handle.kind == HandleKind::Path);
    known.or_else(|| Some(Handle { kind: HandleKind::Path, text: (*parts.last()?).to_owned() }))
}

fn todos(name: &str, arguments: &Value) -> Option<Vec<String>> {
    let tool = TOOLS.todo.iter().find(|tool| tool.names.iter().any(|known| known == name))?;
    let list = tool.arguments.iter().find_map(|argument| arguments[argument].as_array())?;
    let is_open = |item: &&Value| {
        !item["status"].as_str().is_some_and(|status| tool.closed.iter().any(|it| it == status))
    };
    let text = |item: &Value| {
        let text = tool.texts.iter().find_map(|field| item[field].as_str()).or(item.as_str());
        text.map(str::to_owned).filter(|text| !text.trim().is_empty())
    };
    Some(list.iter().filter(is_open).filter_map(text).collect())
}
