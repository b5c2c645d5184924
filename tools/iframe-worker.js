// Browsers start no worker from a file on the disk. There this one runs the worker's script in a hidden frame,
// so that the search of the documentation works without any server. Over http and https nothing is changed.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const scope = frame.contentWindow;
      this.scope = scope;
      scope.postMessage = (data) => this.answer(data);
      scope.importScripts = () => {};
      const script = scope.document.createElement("script");
      script.src = url;
      script.addEventListener("load", () => {
        for (const data of this.waiting) this.deliver(data);
        this.waiting = null;
      });
      scope.document.body.append(script);
    }

    answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    deliver(data) {
      this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data }));
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.deliver(data);
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
}
