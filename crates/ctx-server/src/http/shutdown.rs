//! Two-stage shutdown: graceful, then immediate.

use tokio::sync::watch;

/// The requested stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Running,
    Finish,
    Immediate,
}

/// Stops a server. Clones stop the same server.
#[derive(Clone, Debug)]
pub struct Shutdown {
    stage: watch::Sender<Stage>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { stage: watch::Sender::new(Stage::Running) }
    }
}

impl Shutdown {
    /// Requests a graceful shutdown; the second call requests an immediate one.
    pub fn stop(&self) {
        self.stage.send_modify(|stage| {
            *stage = if *stage == Stage::Running { Stage::Finish } else { Stage::Immediate };
        });
    }

    /// Waits for a shutdown request.
    pub async fn stopped(&self) {
        self.until(Stage::Finish).await;
    }

    /// Waits for a request to stop immediately.
    pub(crate) async fn immediate(&self) {
        self.until(Stage::Immediate).await;
    }

    async fn until(&self, stage: Stage) {
        // The sender is alive, so this does not fail.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }
}
