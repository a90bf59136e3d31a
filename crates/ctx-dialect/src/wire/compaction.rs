//! Compactions that a client of the Responses API asks for: by a last item `compaction_trigger`, or
//! at the path `/responses/compact`. The answer has one `compaction` item, whose content the client
//! sends back unread in later requests, in place of the history.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::context_compaction::block_content;
use super::peek::peek;
use super::response_object::{ResponseHead, numbered};
use super::rewrite::patched;
use super::unit::span;
use super::{Protocol, Route};
use crate::json::{Object, ObjectWriter, array, elements, quote};

/// The types of OpenAI's compaction items.
pub(super) const COMPACTIONS: [&str; 3] =
    ["compaction", "compaction_summary", "context_compaction"];
const TRIGGER: &str = "compaction_trigger";
const PREVIOUS: &str = "previous_response_id";
const CONVERSATION: &str = "conversation";

/// The elements of a body's history, oldest first: the items of the Responses API, or messages.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    body: &'a str,
    at: Range<usize>,
    all: Vec<&'a RawValue>,
}

impl<'a> Items<'a> {
    /// Finds the items of a body; `None` if its history is not a list.
    #[must_use]
    pub fn of(protocol: Protocol, body: &'a str) -> Option<Self> {
        let (object, error) = Object::parse_prefix(body);
        let input = object.get(protocol.history()).filter(|_| error.is_none())?;
        let (from, to) = span(body, input);
        Some(Self { body, at: from..to, all: elements(input)? })
    }

    /// Returns them as in the body.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.all.iter().map(|item| item.get())
    }

    /// Whether the last item asks for a compaction.
    pub fn end_in_trigger(&self) -> bool {
        self.iter().next_back().is_some_and(is_trigger)
    }

    /// Returns the body with other items.
    pub fn replaced<T: AsRef<str>>(&self, items: impl IntoIterator<Item = T>) -> String {
        let (before, after) = (self.body.get(..self.at.start), self.body.get(self.at.end..));
        [before.unwrap_or_default(), &array(items), after.unwrap_or_default()].concat()
    }
}

/// Returns the id of the response that a Responses body continues.
#[must_use]
pub fn previous_response(body: &Object<'_>) -> Option<String> {
    body.owned(PREVIOUS)
}

/// Returns the id of the conversation at the provider that a Responses body continues.
#[must_use]
pub fn conversation(body: &Object<'_>) -> Option<String> {
    body.owned(CONVERSATION).or_else(|| body.object(CONVERSATION)?.owned("id"))
}

/// Returns a Responses body with these items as its input, instead of a reference to an earlier
/// response or a conversation.
#[must_use]
pub fn with_input_items<T: AsRef<str>>(body: &str, items: impl IntoIterator<Item = T>) -> String {
    let (object, _) = Object::parse_prefix(body);
    let input = Protocol::Responses.history();
    let input = (input, Some(array(items)));
    patched(&object, &[input, (PREVIOUS, None), (CONVERSATION, None)])
}

/// Returns a Responses body that continues another response.
#[must_use]
pub fn with_previous_response(body: &str, id: &str) -> Option<String> {
    let (object, _) = Object::parse_prefix(body);
    object.has(PREVIOUS).then(|| patched(&object, &[(PREVIOUS, Some(quote(id)))]))
}

/// Returns the id of the item that an item refers to.
#[must_use]
pub fn referenced_item(item: &str) -> Option<String> {
    let [kind, id] = peek(item, ["type", "id"]);
    kind.filter(|kind| kind == "item_reference")?;
    id.map(Cow::into_owned)
}

/// Whether an item asks for a compaction of the items before it.
#[must_use]
pub fn is_trigger(item: &str) -> bool {
    peek(item, ["type"]) == [Some(TRIGGER.into())]
}

/// Returns the content of a compaction item; `None` for other items.
#[must_use]
pub fn compaction_content(item: &str) -> Option<Cow<'_, str>> {
    let [kind] = peek(item, ["type"]);
    kind.filter(|kind| COMPACTIONS.contains(&&**kind))?;
    let [content] = peek(item, ["encrypted_content"]);
    content
}

/// Returns an item that holds a message of a developer.
#[must_use]
pub fn developer_item(text: &str) -> String {
    let part = ObjectWriter::new().text("type", "input_text").text("text", text).end();
    let message = ObjectWriter::new().text("type", "message").text("role", "developer");
    message.raw("content", array([part])).end()
}

/// Returns the content of the provider's compaction in an element of a history: text of Anthropic's
/// block, opaque text of OpenAI's item. `None` if it has none.
#[must_use]
pub fn compaction_in(protocol: Protocol, element: &str) -> Option<String> {
    match protocol {
        Protocol::Responses => compaction_content(element).map(Cow::into_owned),
        Protocol::Messages => {
            let blocks = Object::parse(element).ok()?.array("content")?;
            blocks.into_iter().rev().find_map(block_content).map(Cow::into_owned)
        }
        Protocol::Chat | Protocol::Gemini | Protocol::Converse => None,
    }
}

/// An answer to a request for a compaction.
#[derive(Clone, Debug)]
pub struct CompactionAnswer<'a> {
    /// The ids of the answer and of the item end in this.
    pub id: &'a str,
    /// The content of the item.
    pub content: &'a str,
    /// The model of the request.
    pub model: &'a str,
    /// When it was made, in seconds since 1970.
    pub created_at: i64,
    /// The tokens of the compacted history.
    pub tokens: u64,
}

impl CompactionAnswer<'_> {
    /// Returns the body of the answer: a stream of events, or one object.
    pub fn body(&self, route: &Route, streams: bool) -> String {
        let item = ObjectWriter::new()
            .text("type", "compaction")
            .text("id", &format!("cmp_{}", self.id))
            .text("encrypted_content", self.content)
            .end();
        let object = if route.is_compaction { "response.compaction" } else { "response" };
        let head = ResponseHead { id: self.id, model: self.model, created_at: self.created_at };
        let answer = |status: &str, items: &[&String]| {
            let usage = ObjectWriter::new()
                .plain("input_tokens", self.tokens)
                .plain("output_tokens", 0)
                .plain("total_tokens", self.tokens);
            head.object(object, status, items).raw("usage", usage.end()).end()
        };
        if !streams || route.is_compaction {
            return answer("completed", &[&item]);
        }
        let new = ObjectWriter::new;
        let of_item = new().plain("output_index", 0).raw("item", &item);
        let whole = |status, items: &[&String]| new().raw("response", answer(status, items));
        let events = [
            ("response.created", whole("in_progress", &[])),
            ("response.output_item.added", of_item.clone()),
            ("response.output_item.done", of_item),
            ("response.completed", whole("completed", &[&item])),
        ];
        numbered(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Watch, route};

    const ANSWER: CompactionAnswer<'_> =
        CompactionAnswer { id: "1", content: "c", model: "m", created_at: 9, tokens: 5 };

    fn compactions_in(answer: &str) -> Vec<String> {
        let mut watch = Watch::new(Protocol::Responses);
        watch.push(answer.as_bytes());
        watch.end();
        watch.compactions().to_vec()
    }

    #[test]
    fn an_answer_has_one_item_in_each_form() {
        for (path, streams) in
            [("/v1/responses", true), ("/v1/responses", false), ("/v1/responses/compact", true)]
        {
            let body = ANSWER.body(&route("POST", path).unwrap(), streams);
            assert_eq!(compactions_in(&body), ["c"], "{body}");
            assert_eq!(body.starts_with("event:"), path == "/v1/responses" && streams);
        }
    }

    #[test]
    fn other_items_are_replaced_and_the_rest_of_the_body_is_unchanged() {
        let body =
            r#"{"a": 1.50, "input": [ {"type":"message"}, {"type":"compaction_trigger"} ], "b":2}"#;
        let items = Items::of(Protocol::Responses, body).unwrap();
        assert!(items.end_in_trigger());
        assert_eq!(items.replaced(["7"]), r#"{"a": 1.50, "input": [7], "b":2}"#);
        for other in [r#"{"input":"compaction_trigger"}"#, "{}", "[]", r#"{"input":[1]"#] {
            assert!(Items::of(Protocol::Responses, other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_reference_is_replaced_by_items() {
        let body = r#"{"instructions":"hi","input":"hi","previous_response_id":"r","x": 1.50}"#;
        assert_eq!(with_input_items(body, ["7"]), r#"{"instructions":"hi","input":[7],"x":1.50}"#);
    }

    #[test]
    fn an_answer_in_words_has_no_item() {
        let said = r#"{"output":[{"type":"message","content":[{"text":"compaction"}]}]}"#;
        let event = format!("data: {{\"type\":\"response.output_item.done\",\"item\":{said}}}\n\n");
        for answer in [said, &event, "", "{", "data: {\n\n"] {
            assert!(compactions_in(answer).is_empty(), "{answer}");
        }
    }
}
