//! The text of a summary: a first line with the covered range, and the content.

use ctx_engine_sdk::{Error, ErrorKind, Host, Result, Row};

use crate::said::{Content, cite};
use crate::tree::{Node, OPENING, PREFIX};
use crate::{excerpt, prose, store};

/// Writes summaries, by the host's model or as excerpts, and stores them.
pub(crate) struct Writer<'w, 'h> {
    session: &'w str,
    host: &'w mut Host<'h>,
    calls: usize,
    wish: Option<&'w str>,
}

impl<'w, 'h> Writer<'w, 'h> {
    /// Creates a writer that calls the model at most `calls` times. `wish` are the user's
    /// instructions for it.
    pub(crate) fn new(
        session: &'w str,
        host: &'w mut Host<'h>,
        calls: usize,
        wish: Option<&'w str>,
    ) -> Self {
        Self { session, host, calls, wish }
    }

    /// Returns an error if the host cancelled the call.
    pub(crate) fn check_cancelled(&self) -> Result<()> {
        if self.host.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled while folding"));
        }
        Ok(())
    }

    /// Writes a leaf of about `tokens` that covers these rows. It leaves the last `spare` calls of
    /// the model to later summaries.
    pub(crate) fn leaf(&mut self, rows: &[&Row], tokens: u64, spare: usize) -> Result<Node> {
        let contents: Vec<Content> = rows.iter().map(|row| Content::of(row)).collect();
        let mut node = Node {
            entries: rows.iter().map(|row| row.id.clone()).collect(),
            messages: rows.len(),
            first: rows.first().map(|row| cite(&row.id)).unwrap_or_default(),
            last: rows.last().map(|row| cite(&row.id)).unwrap_or_default(),
            ..Node::default()
        };
        node.id = id_of(0, &node.entries);
        let head = head(&node);
        let bytes = room(tokens, &head);
        let body = match self.take_call(spare) {
            true => prose::of_messages(&contents, bytes, self.wish, self.host),
            false => None,
        };
        let body = body.unwrap_or_else(|| excerpt::of_messages(&contents, bytes));
        self.finish(node, head, &body)
    }

    /// Writes a summary of about `tokens` that covers several summaries.
    pub(crate) fn parent(&mut self, children: &[&Node], tokens: u64) -> Result<Node> {
        let node = Node {
            id: parent_id(children),
            level: parent_level(children),
            children: children.iter().map(|child| child.id.clone()).collect(),
            messages: children.iter().map(|child| child.messages).sum(),
            first: children.first().map(|child| child.first.clone()).unwrap_or_default(),
            last: children.last().map(|child| child.last.clone()).unwrap_or_default(),
            ..Node::default()
        };
        let head = head(&node);
        let bytes = room(tokens, &head);
        let bodies: Vec<&str> = children.iter().map(|child| child.body()).collect();
        let body = match self.take_call(0) {
            true => prose::of_summaries(&bodies, bytes, self.wish, self.host),
            false => None,
        };
        let body = body.unwrap_or_else(|| excerpt::of_summaries(&bodies, bytes));
        self.finish(node, head, &body)
    }

    /// Whether the model may be called. If so, counts the call.
    fn take_call(&mut self, spare: usize) -> bool {
        let may =
            self.calls > spare && self.host.offers(ctx_engine_sdk::protocol::service::COMPLETE);
        self.calls -= usize::from(may);
        may
    }

    fn finish(&mut self, mut node: Node, head: String, body: &str) -> Result<Node> {
        node.text = head;
        if !body.is_empty() {
            node.text.push('\n');
            node.text.push_str(body);
        }
        let counted = self.host.count(vec![node.text.clone()]).ok();
        let counted = counted.and_then(|counts| counts.first().copied());
        // Three bytes per token is a safe estimate. A message has a few tokens more than its text.
        node.tokens = counted.unwrap_or(node.text.len() as u64 / 3) + 8;
        store::save_node(self.session, &node, self.host)?;
        Ok(node)
    }
}

/// Returns the id of a summary that covers several summaries.
pub(crate) fn parent_id(children: &[&Node]) -> String {
    let ids: Vec<String> = children.iter().map(|child| child.id.clone()).collect();
    id_of(parent_level(children), &ids)
}

fn parent_level(children: &[&Node]) -> u32 {
    children.iter().map(|child| child.level).max().unwrap_or(0).saturating_add(1)
}

fn head(node: &Node) -> String {
    let Node { id, messages, first, last, children, .. } = node;
    let made_of = match children.len() {
        0 => String::new(),
        _ => {
            let bare = |id: &String| format!(" s:{}", id.strip_prefix(PREFIX).unwrap_or(id));
            format!(", via{}", children.iter().map(bare).collect::<String>())
        }
    };
    format!(
        "{OPENING}{id} replaces {messages} messages, [e:{first}]..[e:{last}]{made_of}; \
         `ctx expand` shows them in full]"
    )
}

fn room(tokens: u64, head: &str) -> usize {
    let bytes = usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX);
    bytes.saturating_sub(head.len() + 1)
}

/// Returns an id with the FNV-1a hash of the parts that a summary covers. It distinguishes the
/// summaries of one session, and is the same on every machine.
fn id_of(level: u32, parts: &[String]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{PREFIX}{level}:{:010x}", hash >> 24)
}
