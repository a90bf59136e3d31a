//! One connection.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Notify};
use tracing::{debug, info};

use crate::commands::{self, Context};
use crate::frame::{Frame, FrameError};
use crate::lease::WorkerId;
use crate::queue::Queue;

/// Frames longer than this close the connection.
const LONGEST_FRAME: usize = 8 << 20;

/// Serves one client until it leaves.
pub async fn serve(
    mut stream: TcpStream,
    worker: WorkerId,
    queue: Arc<Mutex<Queue>>,
    changed: Arc<Notify>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = BytesMut::with_capacity(16 << 10);
    let mut answer = BytesMut::with_capacity(16 << 10);
    info!(worker = worker.0, "connected");
    loop {
        match Frame::parse(&buffer, LONGEST_FRAME) {
            Ok(Some((frame, used))) => {
                buffer.advance(used);
                let mut context = Context { worker, queue: &queue, changed: &changed };
                commands::run(frame, &mut context, &mut answer).await;
                stream.write_all(&answer).await?;
                answer.clear();
            }
            Ok(None) => {
                if stream.read_buf(&mut buffer).await? == 0 {
                    break;
                }
            }
            Err(FrameError::TooLong(bytes)) => {
                debug!(worker = worker.0, bytes, "frame too long");
                break;
            }
            Err(error) => {
                debug!(worker = worker.0, ?error, "bad frame");
                break;
            }
        }
    }
    let back = queue.lock().await.drop_worker(worker);
    info!(worker = worker.0, ?back, "left");
    changed.notify_one();
    Ok(())
}
