//! Writes the history list of an outgoing request.

use std::borrow::Cow;

use ctx_core::{Message, Role};

use super::peek::peek;
use super::rewrite::{self, Names, patched};
use super::{OutgoingUnit, Protocol, Request, merge, system};
use crate::json::{Object, ObjectWriter, array, elements, quote, string, text_block};

/// One element of the list.
#[derive(Clone, Debug)]
pub(super) struct Element<'a> {
    pub(super) json: Cow<'a, str>,
    /// The index of the unit, if it is unchanged.
    pub(super) unit: Option<usize>,
}

impl Element<'_> {
    pub(super) fn new(json: String) -> Self {
        Self { json: Cow::Owned(json), unit: None }
    }

    pub(super) fn role(&self) -> Option<Cow<'_, str>> {
        let [role] = peek(&self.json, ["role"]);
        role
    }

    /// Whether it directly followed `before` in the original.
    pub(super) fn follows(&self, before: &Self) -> bool {
        matches!((before.unit, self.unit), (Some(before), Some(own)) if own == before + 1)
    }
}

/// Writes the list, with `addition` appended to the system prompt that is part of it.
pub(super) fn write(
    request: &Request<'_>,
    out: &[OutgoingUnit<'_>],
    addition: Option<&str>,
) -> String {
    let mut all = elements_of(request, out);
    if let Some(addition) = addition {
        add_to_system(&mut all, addition);
    }
    let bytes: usize = all.iter().map(|element| element.json.len() + 1).sum();
    let mut list = String::with_capacity(bytes + request.ignored.len() + 2);
    list.push('[');
    list.push_str(request.ignored);
    for (n, element) in all.iter().enumerate() {
        list.push_str(if n > 0 { "," } else { "" });
        list.push_str(&element.json);
    }
    list.push(']');
    list
}

/// Returns the elements of the list after those that the provider ignores.
pub(super) fn elements_of<'a>(request: &Request<'a>, out: &[OutgoingUnit<'_>]) -> Vec<Element<'a>> {
    let mut all: Vec<Element<'_>> = Vec::with_capacity(out.len());
    let mut deferred = DeferredImages::default();
    let names = Names::new();
    for out in out {
        match *out {
            OutgoingUnit::Unchanged(n) => {
                let Some(unit) = request.units.get(n) else { continue };
                let json = match request.is_list {
                    true => Cow::Borrowed(unit.raw),
                    false => Cow::Owned(as_message(unit.raw)),
                };
                let element = Element { json, unit: Some(n) };
                deferred.before(&element, &mut all);
                all.push(element);
            }
            OutgoingUnit::Message { message, of } => {
                let of = of.and_then(|n| request.units.get(n)).filter(|_| request.is_list);
                let written = rewrite::write(request, &names, message, of);
                for json in written {
                    let element = Element::new(json);
                    deferred.before(&element, &mut all);
                    match deferred.takes(request.protocol, message, &element) {
                        true => deferred.images.push(element),
                        false => all.push(element),
                    }
                }
            }
        }
    }
    deferred.end(&mut all);
    match request.protocol {
        Protocol::Messages | Protocol::Gemini | Protocol::Converse => {
            merge::merge(request.protocol, all)
        }
        Protocol::Chat | Protocol::Responses => all,
    }
}

/// Converts a history that is not a list to the equivalent message.
fn as_message(raw: &str) -> String {
    match raw.starts_with('"') {
        true => ObjectWriter::new().text("role", "user").raw("content", raw).end(),
        false => raw.to_owned(),
    }
}

/// Images from tool results, which OpenAI's chat accepts only in user messages. They follow the
/// last of the results, because nothing may come between these.
#[derive(Default)]
struct DeferredImages<'a> {
    images: Vec<Element<'a>>,
}

impl<'a> DeferredImages<'a> {
    fn takes(&self, protocol: Protocol, message: &Message, element: &Element<'_>) -> bool {
        protocol == Protocol::Chat
            && message.role == Role::ToolResult
            && element.role().as_deref() == Some("user")
    }

    fn before(&mut self, element: &Element<'_>, all: &mut Vec<Element<'a>>) {
        if !self.images.is_empty() && element.role().as_deref() == Some("assistant") {
            all.append(&mut self.images);
        }
    }

    fn end(mut self, all: &mut Vec<Element<'a>>) {
        all.append(&mut self.images);
    }
}

/// Appends to the last of the leading system messages, or inserts one.
fn add_to_system(all: &mut Vec<Element<'_>>, addition: &str) {
    let is_system = |element: &&mut Element<'_>| {
        matches!(element.role().as_deref(), Some("system" | "developer"))
    };
    match all.iter_mut().take_while(is_system).last() {
        Some(last) => last.json = Cow::Owned(with_text(&last.json, addition)),
        None => {
            let json = ObjectWriter::new().text("role", "system").text("content", addition).end();
            all.insert(0, Element::new(json));
        }
    }
}

fn with_text(message: &str, addition: &str) -> String {
    let Ok(object) = Object::parse(message) else { return message.to_owned() };
    let content = object.get("content");
    let text = content.map_or(Some(Cow::Borrowed("")), string);
    let content = match (text, content.and_then(elements)) {
        (Some(text), _) => quote(&system::joined(&text, addition)),
        (None, Some(parts)) => {
            let more = text_block(addition);
            array(parts.iter().map(|raw| raw.get()).chain([more.as_str()]))
        }
        (None, None) => return message.to_owned(),
    };
    patched(&object, &[("content", Some(content))])
}
