//! Ending: first politely, then at once.

use tokio::sync::watch;

/// How urgent the end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    #[default]
    GoOn,
    Finish,
    Now,
}

/// Tells a server to stop. Clones tell the same server.
#[derive(Clone, Debug)]
pub struct Shutdown {
    wish: watch::Sender<Wish>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { wish: watch::Sender::new(Wish::GoOn) }
    }
}

impl Shutdown {
    /// Asks it to finish what runs and to take nothing new; asked again, it ends at once.
    pub fn stop(&self) {
        self.wish.send_modify(|wish| {
            *wish = if *wish == Wish::GoOn { Wish::Finish } else { Wish::Now };
        });
    }

    /// Waits until it was asked to stop.
    pub async fn stopped(&self) {
        self.until(Wish::Finish).await;
    }

    /// Waits until it was asked to end at once.
    pub async fn hurried(&self) {
        self.until(Wish::Now).await;
    }

    async fn until(&self, wish: Wish) {
        // The sender is held here, so this does not fail.
        let _ = self.wish.subscribe().wait_for(|now| *now >= wish).await;
    }
}
