//! Parts of an answer of the Responses API that ctx writes.

use crate::json::{ObjectWriter, array};

/// What each form of a response has.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseHead<'a> {
    /// The ids of the response and of its items end in this.
    pub(super) id: &'a str,
    pub(super) model: &'a str,
    /// In seconds since 1970.
    pub(super) created_at: i64,
}

impl ResponseHead<'_> {
    /// Returns a response without its usage.
    pub(super) fn response<T: AsRef<str>>(&self, status: &str, items: &[T]) -> ObjectWriter {
        self.object("response", status, items)
    }

    /// Returns an object of another kind, with the fields of a response.
    pub(super) fn object<T: AsRef<str>>(
        &self,
        kind: &str,
        status: &str,
        items: &[T],
    ) -> ObjectWriter {
        ObjectWriter::new()
            .text("id", &format!("resp_{}", self.id))
            .text("object", kind)
            .plain("created_at", self.created_at)
            .text("status", status)
            .text("model", self.model)
            .raw("output", array(items))
    }

    /// Returns the id of its message.
    pub(super) fn item_id(&self) -> String {
        format!("msg_{}", self.id)
    }

    /// Returns its message, with the text if it is complete.
    pub(super) fn message(&self, text: Option<&str>) -> String {
        let status = if text.is_some() { "completed" } else { "in_progress" };
        ObjectWriter::new()
            .text("type", "message")
            .text("id", &self.item_id())
            .text("status", status)
            .text("role", "assistant")
            .raw("content", array(text.map(text_part)))
            .end()
    }
}

/// Returns a part of a message.
pub(super) fn text_part(text: &str) -> String {
    let part = ObjectWriter::new().text("type", "output_text").text("text", text);
    part.raw("annotations", "[]").end()
}

/// Returns a stream of events with their numbers.
pub(super) fn numbered<const N: usize>(events: [(&str, ObjectWriter); N]) -> String {
    let events = events.into_iter().enumerate();
    events.map(|(n, (kind, data))| typed(kind, &data.plain("sequence_number", n))).collect()
}

/// Returns an event with its name as its type.
pub(super) fn typed(kind: &str, data: &ObjectWriter) -> String {
    let data = ObjectWriter::new().text("type", kind).with(data).end();
    format!("event: {kind}\ndata: {data}\n\n")
}
