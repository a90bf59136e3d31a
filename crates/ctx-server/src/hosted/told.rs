//! How a host tells a message, and how it is known again.

use std::sync::Arc;

use ctx_core::{ContentHash, Message, Result};

/// One message as a host tells it.
pub(crate) trait Unit {
    /// As it stands in what the host sent.
    fn raw(&self) -> &str;

    /// The hash of that text.
    fn mark(&self) -> Mark {
        mark(self.raw())
    }

    /// What it says. Asked only where the text is not known already.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](ctx_core::ErrorKind::InvalidInput) for what is no message.
    fn read(&self) -> Result<Message>;

    /// The same, with the hash of its content.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    fn content(&self) -> Result<(Arc<Message>, ContentHash)> {
        let message = self.read()?;
        let hash = ContentHash::of(&message);
        Ok((Arc::new(message), hash))
    }
}

/// What is kept of a message's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// All of it: the host tells each message once.
    #[default]
    Text,
    /// A hash: the host sends the text again with every request.
    Mark,
}

/// How a message was told, to know it again byte for byte.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// It was read from a file.
    Not,
    /// The text.
    Text(Arc<str>),
    /// Its hash.
    Mark(Mark),
}

/// 128 bits of BLAKE3 over a message's text.
pub(crate) type Mark = [u8; 16];

/// The hash of a message's text.
pub(crate) fn mark(raw: &str) -> Mark {
    let mut first = [0; 16];
    first.copy_from_slice(&blake3::hash(raw.as_bytes()).as_bytes()[..16]);
    first
}

impl Told {
    pub(super) fn of(unit: &impl Unit, keeps: Keeps) -> Self {
        match keeps {
            Keeps::Text => Self::Text(Arc::from(unit.raw())),
            Keeps::Mark => Self::Mark(unit.mark()),
        }
    }

    pub(super) fn is(&self, unit: &impl Unit) -> bool {
        match self {
            Self::Not => false,
            Self::Text(text) => **text == *unit.raw(),
            Self::Mark(known) => *known == unit.mark(),
        }
    }

    /// The text, where it was kept.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Not | Self::Mark(_) => None,
        }
    }
}
