// SPDX-License-Identifier: Apache-2.0
import CGPIOD
import Glibc

/// The main loop of a bank's thread: find the chip, serve its lines until they fail, then start again.
final class BankLoop {
  /// The delay before a retry. Changes of device nodes wake the loop earlier, but no event reports that another program
  /// has released a line.
  private static let pause = Duration.seconds(5)

  private let state: BankState
  private let deviceNodes: Int32

  init(_ state: BankState) {
    self.state = state
    deviceNodes = approval_gpio_watch_device_nodes()
  }

  deinit { if deviceNodes >= 0 { close(deviceNodes) } }

  func run() {
    while !state.isEnded {
      let began = monotonicTime()
      let failure = serve()
      state.closeOutputs()
      guard let failure else { break }
      if state.note(failure) {
        for index in state.inputs.indices { state.hear(index, .unavailable(failure)) }
      }
      // A chip that fails after some time may be available again immediately. A chip that fails immediately must not
      // cause a busy loop.
      if monotonicTime() - began < .seconds(1) { sleep(until: monotonicTime() + Self.pause) }
    }
  }

  /// - Returns: why the lines cannot be used (any more); nil when the bank is closed.
  private func serve() -> GPIOError? {
    do throws(GPIOError) {
      let chip = try Chip.labeled(state.labels)
      var readers: [InputReader] = []
      for input in state.inputs { readers.append(try InputReader(input, of: chip, consumer: state.consumer)) }
      try state.openOutputs(of: chip)
      for index in readers.indices { state.hear(index, try readers[index].opened(at: monotonicTime())) }
      var order = EventOrder()
      while !state.isEnded {
        let isReady = try wait(for: readers, of: chip)
        let now = monotonicTime()
        for index in readers.indices {
          // All of them: an edge of another line may be earlier than the one that is ready.
          let edges = isReady ? try readers[index].drain(now: now) : []
          for event in edges + readers[index].time(now) { order.add(index, event, now: now) }
        }
        // The thread wakes when an unsettled edge may have settled, and so for the events that wait for it.
        for next in order.take(now: now, unsettled: readers.compactMap(\.unsettledSince).min()) {
          state.hear(next.input, next.event)
        }
      }
      return nil
    } catch { return error }
  }

  /// Waits for an edge, a debouncing timeout, or a state change.
  /// - Returns: whether edges are waiting.
  private func wait(for readers: [InputReader], of chip: Chip) throws(GPIOError) -> Bool {
    let lines = readers.map { pollfd(fd: $0.line.descriptor, events: Int16(POLLIN), revents: 0) }
    let (ready, nodesChanged) = poll(lines, until: readers.compactMap(\.nextDeadline).min())
    if ready.contains(where: { $0.revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 }) {
      throw .gone(chip: chip.label)
    }
    if let failure = state.takeFailure() { throw failure }
    // Kernels before 6.6 do not wake the poll of a line when its chip is removed. The chip's device node always
    // disappears.
    if nodesChanged, access(chip.path, F_OK) != 0 { throw .gone(chip: chip.label) }
    return ready.contains { $0.revents != 0 }
  }

  private func sleep(until moment: Duration) {
    _ = poll([], until: moment)
  }

  /// Sleeps until a line is ready, a device node or the state changes, or `moment` is reached.
  private func poll(_ lines: [pollfd], until moment: Duration?) -> (lines: [pollfd], nodesChanged: Bool) {
    var descriptors = lines
    for descriptor in [state.wakeUp, deviceNodes] {
      descriptors.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
    }
    var timeout = timespec()
    if let moment {
      let (seconds, attoseconds) = max(.zero, moment - monotonicTime()).components
      timeout = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    }
    let count = withUnsafePointer(to: timeout) {
      approval_gpio_poll(&descriptors, UInt(descriptors.count), moment == nil ? nil : $0)
    }
    if count > 0 {
      for descriptor in descriptors.suffix(2) where descriptor.revents != 0 { empty(descriptor.fd) }
    }
    // Without inotify, check the chip on every wake-up.
    return (Array(descriptors.prefix(lines.count)), deviceNodes < 0 || descriptors.last?.revents != 0)
  }

  /// Reads and discards all waiting bytes. Their values have no meaning.
  private func empty(_ descriptor: Int32) {
    withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
      while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
    }
  }
}

/// The time on CLOCK_MONOTONIC, the kernel's clock for edge timestamps.
package func monotonicTime() -> Duration {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
