//! Whose files are in hand: which sessions are open, or being opened or closed.
//!
//! Work on a disk goes on when whoever waited for it is dropped, and holds the session's lock until it
//! is done. Who wants the session next waits for that, instead of meeting a lock of his own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ctx_session::key::SessionKey;
use tokio::sync::Notify;

use super::locked;

/// The sessions of a runtime whose files are in hand.
#[derive(Clone, Default)]
pub(crate) struct Hands {
    held: Arc<Mutex<HashMap<SessionKey, Held>>>,
}

#[derive(Default)]
struct Held {
    hands: usize,
    free: Arc<Notify>,
}

impl Hands {
    /// Takes a session in hand, before anything is done to its file.
    pub(crate) fn take(&self, key: &SessionKey) -> Hand {
        locked(&self.held).entry(key.clone()).or_default().hands += 1;
        Hand { _inner: Arc::new(Inner { hands: self.clone(), key: key.clone() }) }
    }

    /// Waits until nobody has the session in hand.
    pub(crate) async fn free(&self, key: &SessionKey) {
        let free = |hands: &Self| locked(&hands.held).get(key).map(|held| held.free.clone());
        while let Some(notify) = free(self) {
            let notified = notify.notified();
            // What came free until now would not be heard of.
            if free(self).is_some() {
                notified.await;
            }
        }
    }

    /// How many sessions are in hand.
    pub(crate) fn len(&self) -> usize {
        locked(&self.held).len()
    }
}

/// A session in hand, until the last clone of this is gone.
#[derive(Clone)]
pub(crate) struct Hand {
    _inner: Arc<Inner>,
}

struct Inner {
    hands: Hands,
    key: SessionKey,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut held = locked(&self.hands.held);
        let Some(of_key) = held.get_mut(&self.key) else { return };
        of_key.hands -= 1;
        if of_key.hands == 0 {
            let free = of_key.free.clone();
            held.remove(&self.key);
            free.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use ctx_session::key::FileId;

    use super::*;

    #[tokio::test]
    async fn a_session_is_free_when_the_last_hand_is_gone() {
        let (hands, key) = (Hands::default(), SessionKey::main(FileId::main()));
        hands.free(&key).await;
        let (one, other) = (hands.take(&key), hands.take(&key));
        let again = one.clone();
        let mut free = pin!(hands.free(&key));
        for hand in [one, other] {
            let waits = poll_fn(|context| Poll::Ready(free.as_mut().poll(context).is_pending()));
            assert!(waits.await);
            drop(hand);
        }
        assert_eq!(hands.len(), 1);
        drop(again);
        free.await;
        assert_eq!(hands.len(), 0);
    }
}
