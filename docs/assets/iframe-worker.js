/* A page that was opened from a disk may not start a worker. This runs the worker of the search in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.ready = new Promise(resolve => {
        this.frame.addEventListener("load", resolve, { once: true })
      })
      window.addEventListener("message", event => {
        if (event.source !== this.frame.contentWindow) return
        const message = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(message)
        if (this.onmessage) this.onmessage(message)
      })
      this.frame.srcdoc =
        "<script>postMessage = message => parent.postMessage(message, '*')\n" +
        "importScripts = (...addresses) => Promise.all(addresses.map(address => new Promise((resolve, reject) => {\n" +
        "  const script = document.createElement('script')\n" +
        "  Object.assign(script, { src: address, onload: resolve, onerror: reject })\n" +
        "  document.body.appendChild(script)\n" +
        "})))</" + "script><script src=\"" + new URL(address, document.baseURI) + "\"></" + "script>"
      document.body.appendChild(this.frame)
    }
    postMessage(message) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow
        inside.dispatchEvent(new inside.MessageEvent("message", { data: message }))
      })
    }
    terminate() {
      this.frame.remove()
    }
  }
}
