//! The delivery of an answer, as a list of actions.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::Semaphore;

use super::ledger::Ticket;
use super::request::Outcome;
use super::script::{Cut, Moment, Wait};
use super::step::Step;
use super::wire::{Fault, Mode};

/// One action of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Send these bytes.
    Send(Bytes),
    /// Wait.
    Wait(Wait),
    /// Send these bytes repeatedly, without end.
    Repeat(Bytes),
    /// Close the connection.
    Close,
}

/// The events of a body, and the repeated event if it never ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    pub(super) all: Vec<Bytes>,
    /// The endlessly repeated event, and the number of events before it.
    pub(super) endless: Option<(usize, Bytes)>,
}

impl Events {
    /// A body of one piece.
    pub(super) fn whole(body: impl Into<Bytes>) -> Self {
        Self { all: vec![body.into()], endless: None }
    }

    /// Returns the actions, after the headers, that deliver these events as the step requires.
    pub(super) fn actions(self, step: &Step) -> Vec<Action> {
        let last = self.all.len().saturating_sub(1);
        let mut actions = Vec::with_capacity(self.all.len() + 2);
        let wait_after = match step.wait_at {
            Moment::BeforeHeaders => None,
            Moment::AfterHeaders => Some(0),
            Moment::AfterEvents(n) => Some(n),
        };
        // A wait or cut beyond the last event happens at the end.
        let wait_after = wait_after.map(|n| n.min(self.all.len()));
        let (cut_after, halfway) = match step.cut {
            None | Some(Cut::BeforeHeaders | Cut::InHeaders) => (None, false),
            Some(Cut::AfterHeaders) => (Some(0), false),
            Some(Cut::AfterEvents(n)) => (Some(n.min(self.all.len())), false),
            Some(Cut::InEvent(n)) => (Some(n.min(last)), true),
            Some(Cut::BeforeLastEvent) => (Some(last), false),
        };
        let count = self.all.len();
        let events = self.all.into_iter().map(Some).chain([None]);
        for (n, event) in events.enumerate() {
            if wait_after == Some(n) {
                actions.push(Action::Wait(step.wait));
            }
            if let Some((_, again)) = self.endless.as_ref().filter(|(at, _)| (*at).min(count) == n)
            {
                actions.push(Action::Repeat(again.clone()));
                break;
            }
            if cut_after == Some(n) {
                let half = event.filter(|_| halfway).map(|event| event.slice(..event.len() / 2));
                actions.extend(half.map(Action::Send));
                actions.push(Action::Close);
                break;
            }
            actions.extend(event.map(Action::Send));
        }
        split(actions, step.write_bytes)
    }
}

/// Splits the sent bytes into pieces of this size.
fn split(actions: Vec<Action>, bytes: Option<usize>) -> Vec<Action> {
    let Some(bytes) = bytes.filter(|n| *n > 0) else { return actions };
    let parted = actions.into_iter().flat_map(|action| match action {
        Action::Send(mut all) => {
            let mut parts = Vec::with_capacity(all.len() / bytes + 1);
            while !all.is_empty() {
                parts.push(Action::Send(all.split_to(bytes.min(all.len()))));
            }
            parts
        }
        other => vec![other],
    });
    parted.collect()
}

/// Waits as a step requires. `releases` has a permit for each unused release.
pub(super) async fn wait(wait: Wait, releases: &Semaphore) {
    match wait {
        Wait::No => {}
        Wait::Millis(n) => tokio::time::sleep(Duration::from_millis(n)).await,
        Wait::Release => match releases.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_closed) => {}
        },
        Wait::Forever => std::future::pending().await,
    }
}

/// The remaining actions of one answer.
struct Player {
    actions: std::vec::IntoIter<Action>,
    again: Option<Bytes>,
    releases: Arc<Semaphore>,
    fault: Fault,
    ticket: Ticket,
}

impl Player {
    /// Returns the next bytes of the body, or `None` at its end.
    async fn next(mut self) -> (Self, Option<Bytes>) {
        // The connection is flushed while the body waits, so each piece is sent separately.
        tokio::task::yield_now().await;
        if let Some(bytes) = &self.again {
            let bytes = bytes.clone();
            return (self, Some(bytes));
        }
        while let Some(action) = self.actions.next() {
            match action {
                Action::Send(bytes) if bytes.is_empty() => {}
                Action::Send(bytes) => {
                    // A body of known length is not polled again once it is complete.
                    if self.actions.len() == 0 {
                        self.ticket.set(Outcome::Sent);
                    }
                    return (self, Some(bytes));
                }
                Action::Wait(what) => wait(what, &self.releases).await,
                Action::Repeat(bytes) => {
                    self.again = Some(bytes.clone());
                    return (self, Some(bytes));
                }
                Action::Close => {
                    self.ticket.set(Outcome::Cut);
                    self.fault.set(Mode::CloseWhenFlushed);
                    std::future::pending::<()>().await;
                }
            }
        }
        (self, None)
    }
}

type Next = Pin<Box<dyn Future<Output = (Player, Option<Bytes>)> + Send>>;

/// The body of an answer.
pub(super) struct Delivery {
    next: Option<Next>,
}

impl Delivery {
    pub(super) fn new(
        actions: Vec<Action>,
        releases: Arc<Semaphore>,
        fault: Fault,
        ticket: Ticket,
    ) -> Self {
        let actions = actions.into_iter();
        let player = Player { actions, again: None, releases, fault, ticket };
        Self { next: Some(Box::pin(player.next())) }
    }
}

impl Body for Delivery {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        match std::task::ready!(next.as_mut().poll(cx)) {
            (player, Some(bytes)) => {
                self.next = Some(Box::pin(player.next()));
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            (player, None) => {
                player.ticket.set(Outcome::Sent);
                self.next = None;
                Poll::Ready(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(step: &Step) -> Vec<Action> {
        let all = ["one", "two"].map(Bytes::from).to_vec();
        Events { all, endless: None }.actions(step)
    }

    fn send(text: &str) -> Action {
        Action::Send(Bytes::from(text.to_owned()))
    }

    #[test]
    fn waits_and_cuts_happen_where_the_step_says() {
        let whole = Step::text("");
        let (one, two) = (send("one"), send("two"));
        let hold = Action::Wait(Wait::Release);
        let cases = [
            (whole.clone(), vec![one.clone(), two.clone()]),
            (whole.clone().held(), vec![one.clone(), two.clone()]),
            (
                whole.clone().held_at(Moment::AfterHeaders),
                vec![hold.clone(), one.clone(), two.clone()],
            ),
            (
                whole.clone().held_at(Moment::AfterEvents(1)),
                vec![one.clone(), hold.clone(), two.clone()],
            ),
            (whole.clone().held_at(Moment::AfterEvents(9)), vec![one.clone(), two.clone(), hold]),
            (whole.clone().cut(Cut::AfterHeaders), vec![Action::Close]),
            (whole.clone().cut(Cut::InEvent(1)), vec![one.clone(), send("t"), Action::Close]),
            (whole.clone().cut(Cut::BeforeLastEvent), vec![one.clone(), Action::Close]),
            (whole.clone().cut(Cut::AfterEvents(9)), vec![one, two, Action::Close]),
            (whole.write_bytes(2), ["on", "e", "tw", "o"].map(send).to_vec()),
        ];
        for (step, expected) in cases {
            assert_eq!(actions(&step), expected, "{step:?}");
        }
    }
}
