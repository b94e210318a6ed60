// SPDX-License-Identifier: Apache-2.0
import HummingbirdCore
import Logging
package import NIOCore

/// Handles each connection on its own event loop, so that a request changes threads only where it waits for the
/// database. Handlers must not block.
struct EventLoopChannel<Base: ServerChildChannel>: ServerChildChannel {
  let base: Base
  private let group: any EventLoopGroup
  private let executors: [ObjectIdentifier: EventLoopExecutor]

  /// - Parameter group: the event loops of all connections.
  init(base: Base, group: any EventLoopGroup) {
    self.base = base
    self.group = group
    executors = Dictionary(
      uniqueKeysWithValues: group.makeIterator().map { (ObjectIdentifier($0), EventLoopExecutor(loop: $0)) })
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
    // Lets the next connection have any of the loops. In turn they would not share the work: a token opens a connection
    // for its event stream, which is idle, and then one for its requests.
    for _ in 0..<Int.random(in: 0..<executors.count) { _ = group.next() }
    return base.setup(channel: channel, logger: logger)
  }

  func handle(value: Base.Value, logger: Logger) async {
    await withTaskExecutorPreference(executors[ObjectIdentifier(value.channel.eventLoop)]) {
      await base.handle(value: value, logger: logger)
    }
  }
}

/// Runs tasks on an event loop.
package final class EventLoopExecutor: TaskExecutor {
  private let loop: any EventLoop

  package init(loop: any EventLoop) { self.loop = loop }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
