use std::time::{Duration, Instant};

use ctx_core::Timer;
use ctx_store::conformance::{CASES, check};

use crate::{server, store};

struct RealTime(Instant);

#[async_trait::async_trait]
impl Timer for RealTime {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[tokio::test]
async fn the_store_keeps_the_contract() {
    let Some(server) = server().await else { return };
    let (store, timer) = (store(&server, "acme").await, RealTime(Instant::now()));
    for (number, case) in CASES.iter().enumerate() {
        if let Err(violation) = check(&store, &timer, "a", number).await {
            panic!("{case}: {violation}");
        }
    }
}
