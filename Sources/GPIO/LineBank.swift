import CGPIOD
import Glibc
import Synchronization

/// The lines a board uses of one chip: inputs that tell, outputs that are told. A thread of its own sleeps until an edge
/// comes, a bounce has settled, or device nodes change; when the chip goes away the inputs say so, and when it is back
/// they open again and the outputs take the values they were given last.
///
/// Outputs are off until told otherwise, and off when the bank closes. What a line does after a crash is up to the chip's
/// driver, once the kernel has taken the line back.
public final class LineBank: Sendable {
  private let state: BankState
  private let thread: Mutex<pthread_t?>

  /// - Parameters:
  ///   - labels: what the chip may be called, as kernels differ.
  ///   - consumer: what others see as the user of the lines.
  ///   - hear: told what the inputs say, with their place in `inputs`, on the bank's own thread; never after `close`.
  public init(
    chip labels: [String], inputs: [InputLine], outputs: [OutputLine], consumer: String = "approval-token",
    _ hear: @escaping @Sendable (_ input: Int, InputEvent) -> Void
  ) {
    state = BankState(chip: labels, inputs: inputs, outputs: outputs, consumer: consumer, hear: hear)
    thread = Mutex(start(state))
  }

  deinit { close() }

  /// Why the lines cannot be used now; nil while they can.
  public var trouble: GPIOError? { state.trouble }

  /// Switches an output. Returns at once; while the chip is away the value is kept for its return.
  public func set(_ output: Int, _ isOn: Bool) { state.set(output, isOn) }

  /// Switches the outputs off, gives all lines back and waits until that is done: milliseconds.
  public func close() {
    state.end()
    if let thread = thread.withLock({ $0.take() }) { pthread_join(thread, nil) }
  }
}

private func start(_ state: BankState) -> pthread_t {
  var thread = pthread_t()
  let status = pthread_create(
    &thread, nil,
    { context in
      guard let context else { return nil }
      let state = Unmanaged<BankState>.fromOpaque(context).takeRetainedValue()
      blockAllSignals()
      approval_gpio_name_thread("gpio")
      BankLoop(state).run()
      return nil
    }, Unmanaged.passRetained(state).toOpaque())
  guard status == 0 else { fatalError("the thread for GPIO cannot be started: errno \(status)") }
  return thread
}

/// Signals are for the threads that expect them.
private func blockAllSignals() {
  var all = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, nil)
}
